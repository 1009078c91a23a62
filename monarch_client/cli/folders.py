"""Folders of this machine that a specification names: packed, sent if the portal lacks them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from monarch_client.cli.terminal import tell
from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.rest.client import PortalClient
from monarch_client.spec import JobSpec
from monarch_client.spec.text_edits import set_key
from monarch_client.sync.archive import Packed, pack


@dataclass(frozen=True)
class Sender:
    """Sends folders to one project; relative paths start at `base`."""

    client: PortalClient
    project: str
    base: Path

    def send_all(self, text: str, spec: JobSpec) -> str:
        """`text` with a reference in place of every local folder that `spec` found in it."""
        sources = spec.local_sources()
        if errors := [error for item in sources.items() if (error := self._trouble(*item))]:
            raise InvalidSpecErrors(errors)
        references = {source: self._send(source) for source in sorted(set(sources.values()))}
        if spec.workdir in references:
            text = set_key(text, "workdir", references[str(spec.workdir)])
        mounts = {
            target: references.get(source, source) if isinstance(source, str) else source
            for target, source in spec.file_mounts.items()
        }
        return text if mounts == spec.file_mounts else set_key(text, "file_mounts", mounts)

    def _trouble(self, path: str, source: str) -> SpecError | None:
        """Why what the key at `path` names cannot be sent, before anything is."""
        place = self._place(source)
        if place.is_dir():
            return None
        if place.exists():
            said = f"{place} is a file; only folders can be sent. Name the folder it lies in."
        else:
            said = f"There is nothing at {place}."
        return SpecError(path, None, "local_path", said)

    def _place(self, source: str) -> Path:
        return (self.base / Path(source).expanduser()).absolute()

    def _send(self, source: str) -> str:
        folder = self._place(source)
        with tempfile.TemporaryDirectory(prefix="mportal-") as place:
            packed = pack(folder, Path(place) / "folder.tar.gz")
            if not self.client.has_upload(self.project, packed.digest):
                tell(f"Sending {source} ({_size(packed)})")
                self.client.upload(self.project, packed.path)
        return packed.reference


def _size(packed: Packed) -> str:
    files = "1 file" if packed.file_count == 1 else f"{packed.file_count} files"
    return f"{files}, {packed.size_bytes / 1024:,.0f} KiB"
