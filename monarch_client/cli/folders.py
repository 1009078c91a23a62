"""Folders of this machine that a specification names: packed, sent if the portal lacks them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.cli.terminal import tell
from monarch_client.errors import ArchiveError, InvalidSpecErrors, SpecError
from monarch_client.spec.text_edits import set_key
from monarch_client.sync.archive import DEFAULT_LIMITS, Packed
from monarch_client.sync.packing import pack_selection
from monarch_client.sync.selection import LeftOut, Selection, name_for_people, select

if TYPE_CHECKING:
    from monarch_client import rest
    from monarch_client.spec import JobSpec


@dataclass(frozen=True)
class TravellingFile:
    """A file or link that would travel."""

    path: str
    size_bytes: int


@dataclass(frozen=True)
class Travels:
    """The files that would travel, or not, of the folder that one key names."""

    key: str
    source: str
    file_count: int
    size_bytes: int
    files: tuple[TravellingFile, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def paths(self) -> str:
        """Return the paths that travel, one per line."""
        return "\n".join(name_for_people(file.path) for file in self.files)

    @property
    def listing(self) -> str:
        """Return a readable list of what travels and what is left out."""
        size = _kib(self.size_bytes)
        return "\n".join(
            [
                f"{self.key}: {self.source} ({_files(self.file_count)}, {size})",
                *(
                    f"  {name_for_people(each.path)}  {_kib(each.size_bytes)}"
                    for each in self.files
                ),
                *["Left out:"] * bool(self.left_out),
                *(f"  {name_for_people(each.path)}  ({each.rule})" for each in self.left_out),
            ]
        )


@dataclass(frozen=True)
class Folders:
    """The folders of this machine that specifications name; relative paths start at `base`."""

    base: Path

    def check(self, spec: JobSpec) -> None:
        """Raise InvalidSpecErrors if a folder of `spec` is missing."""
        sources = spec.local_sources()
        if errors := [error for item in sources.items() if (error := self._trouble(*item))]:
            raise InvalidSpecErrors(errors)

    def travels(self, spec: JobSpec) -> list[Travels]:
        """Return the files that would travel, for every key of `spec` that names a folder.

        ArchiveError: something in a folder cannot travel. InvalidSpecErrors: there is no folder.
        """
        self.check(spec)
        return [
            travels_of(key, source, self.select(source))
            for key, source in spec.local_sources().items()
        ]

    def select(self, source: str) -> Selection:
        """Select what travels of the folder `source`. ArchiveError."""
        try:
            return select(self.path_of(source), DEFAULT_LIMITS)
        except ArchiveError as error:
            # With several folders, the error must say which one it means.
            raise type(error)(f"{source}: {error}") from error

    def path_of(self, source: str) -> Path:
        """Return the path of the folder `source`."""
        return (self.base / Path(source).expanduser()).absolute()

    def _trouble(self, path: str, source: str) -> SpecError | None:
        """Return why the folder of the key at `path` cannot be sent; None if it can."""
        folder = self.path_of(source)
        if folder.is_dir():
            return None
        if folder.exists():
            said = f"{folder} is a file; only folders can be sent. Name its folder."
        else:
            said = f"There is nothing at {folder}."
            said += " Variables are not filled in: write the path out." * ("$" in source)
        return SpecError(path, None, "local_path", said)


class Sender:
    """A sender of folders to one project; relative paths start at `base`."""

    def __init__(
        self, client: rest.PortalClient, project: str, base: Path, *, is_verbose: bool = False
    ) -> None:
        self._client = client
        self._project = project
        self._folders = Folders(base)
        self._is_verbose = is_verbose

    def send_all(self, text: str, spec: JobSpec) -> str:
        """Send the local folders of `spec`; return `text` with references in their place."""
        self._folders.check(spec)
        keys = {source: key for key, source in spec.local_sources().items()}
        references = {source: self._send(key, source) for source, key in sorted(keys.items())}
        if isinstance(spec.workdir, str) and spec.workdir in references:
            text = set_key(text, "workdir", references[spec.workdir])
        mounts = {
            target: references.get(source, source) if isinstance(source, str) else source
            for target, source in spec.file_mounts.items()
        }
        return text if mounts == spec.file_mounts else set_key(text, "file_mounts", mounts)

    def _send(self, key: str, source: str) -> str:
        selection = self._folders.select(source)
        if self._is_verbose:
            tell(travels_of(key, source, selection).listing)
        with tempfile.TemporaryDirectory(prefix="mportal-") as place:
            target = Path(place) / "folder.tar.gz"
            packed = pack_selection(self._folders.path_of(source), selection, target)
            if not self._client.has_upload(self._project, packed.digest):
                tell(f"Sending {source} ({_size(packed)})")
                self._client.upload(self._project, packed.path)
        return packed.reference


def travels_of(key: str, source: str, selection: Selection) -> Travels:
    """Return the display form of a selection."""
    files = tuple(TravellingFile(file.path, file.size) for file in selection.files)
    size = selection.size_bytes
    return Travels(key, source, len(files), size, files, selection.left_out)


def _size(packed: Packed) -> str:
    return f"{_files(packed.file_count)}, {_kib(packed.size_bytes)}"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _kib(size_bytes: int) -> str:
    return f"{size_bytes / 1024:,.0f} KiB"
