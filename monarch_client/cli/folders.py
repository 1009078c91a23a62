"""Folders of this machine that a specification names: packed, sent if the portal lacks them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import click

from monarch_client.cli.spec_text import set_key
from monarch_client.rest.client import PortalClient
from monarch_client.spec import JobSpec
from monarch_client.sync.archive import Packed, pack


@dataclass(frozen=True)
class Sender:
    """Sends folders to one project; relative paths start at `base`."""

    client: PortalClient
    project: str
    base: Path

    def send_all(self, text: str, spec: JobSpec) -> str:
        """`text` with a reference in place of every local folder that `spec` found in it."""
        references = {
            source: self._send(source) for source in sorted(set(spec.local_sources().values()))
        }
        if spec.workdir in references:
            text = set_key(text, "workdir", references[str(spec.workdir)])
        mounts = {
            target: references.get(source, source) if isinstance(source, str) else source
            for target, source in spec.file_mounts.items()
        }
        return text if mounts == spec.file_mounts else set_key(text, "file_mounts", mounts)

    def _send(self, source: str) -> str:
        folder = self.base / Path(source).expanduser()
        with tempfile.TemporaryDirectory(prefix="mportal-") as place:
            packed = pack(folder, Path(place) / "folder.tar.gz")
            if not self.client.has_upload(self.project, packed.digest):
                click.echo(f"Sending {source} ({_size(packed)})", err=True)
                self.client.upload(self.project, packed.path)
        return packed.reference


def _size(packed: Packed) -> str:
    files = "1 file" if packed.file_count == 1 else f"{packed.file_count} files"
    return f"{files}, {packed.size_bytes / 1024:,.0f} KiB"
