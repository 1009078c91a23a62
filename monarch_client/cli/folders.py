"""Folders of this machine that a specification names: packed, sent if the portal lacks them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monarch_client.cli.terminal import tell
from monarch_client.errors import ArchiveError, ArchiveTooLargeError, InvalidSpecErrors, SpecError
from monarch_client.spec.findings import join
from monarch_client.spec.text_edits import set_key
from monarch_client.sync.archive import DEFAULT_LIMITS, Packed
from monarch_client.sync.archive_rules import Kind
from monarch_client.sync.packing import pack_entries
from monarch_client.sync.selection import Entry, LeftOut, Selection, name_for_people, select

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
    """The folders of this machine that specifications name, in files of the folder `base`."""

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
        return [self._travels(key, source) for key, source in spec.local_sources().items()]

    def _travels(self, key: str, source: str) -> Travels:
        path = self.path_of(source)
        if path.is_dir():
            return travels_of(key, source, self.select(source))
        return travels_of(key, source, _selection({path.name: path}))

    def select(self, source: str) -> Selection:
        """Select what travels of the folder `source`. ArchiveError."""
        try:
            return select(self.path_of(source), DEFAULT_LIMITS)
        except ArchiveError as error:
            # With several folders, the error must say which one it means.
            raise type(error)(f"{source}: {error}") from error

    def path_of(self, source: str) -> Path:
        """Return the path of the folder `source`: beside the file, or else from here.

        `sky launch` looks from the current folder alone.
        """
        path = Path(source).expanduser()
        beside = self.base / path
        return (beside if beside.exists() or not path.exists() else path).absolute()

    def _trouble(self, path: str, source: str) -> SpecError | None:
        """Return why the folder of the key at `path` cannot be sent; None if it can."""
        folder = self.path_of(source)
        if folder.is_dir() or (folder.is_file() and path != "workdir"):
            return None
        if folder.exists():
            said = f"{folder} is no folder."
        else:
            here = Path(source).absolute()
            said = f"There is nothing at {folder}{f', or at {here}' * (here != folder)}."
            said += " Of variables, only those of envs are filled in." * ("$" in source)
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
        sources = spec.local_sources()
        path_of = self._folders.path_of
        keys = {source: key for key, source in sources.items() if path_of(source).is_dir()}
        references = {source: self._send(key, source) for source, key in sorted(keys.items())}
        if isinstance(spec.workdir, str) and spec.workdir in references:
            text = set_key(text, "workdir", references[spec.workdir])
        files = {
            target: path_of(source)
            for target in spec.file_mounts
            if (source := sources.get(join("file_mounts", target))) and source not in references
        }
        mounts: dict[str, Any] = {
            target: references.get(source, source) if isinstance(source, str) else source
            for target, source in spec.file_mounts.items()
            if target not in files
        }
        mounts.update(self._send_files(files))
        return text if mounts == spec.file_mounts else set_key(text, "file_mounts", mounts)

    def _send_files(self, files: Mapping[str, Path]) -> dict[str, str]:
        """Send files to their targets; return the mounts of the folders that they are put into."""
        by_folder: dict[str, dict[str, Path]] = {}
        for target, path in files.items():
            folder, slash, name = target.rpartition("/")
            # Not the folder's own name, which may be the target of another mount.
            into = f"{folder}{slash}."
            by_folder.setdefault(into, {})[name or path.name] = path
        return {folder: self._send_named(named) for folder, named in by_folder.items()}

    def _send_named(self, files: Mapping[str, Path]) -> str:
        """Send files under names of their own; return the reference. ArchiveError."""
        source = ", ".join(map(str, files.values()))
        entries = _selection(files).entries
        return self._upload(source, [(entry, files[entry.path]) for entry in entries])

    def _send(self, key: str, source: str) -> str:
        selection = self._folders.select(source)
        if self._is_verbose:
            tell(travels_of(key, source, selection).listing)
        folder = self._folders.path_of(source)
        return self._upload(source, [(each, folder / each.path) for each in selection.entries])

    def _upload(self, source: str, entries: Sequence[tuple[Entry, Path]]) -> str:
        with tempfile.TemporaryDirectory(prefix="mportal-") as place:
            packed = pack_entries(entries, Path(place) / "folder.tar.gz")
            if not self._client.has_upload(self._project, packed.digest):
                tell(f"Sending {source} ({_size(packed)})")
                self._client.upload(self._project, packed.path)
        return packed.reference


def _selection(files: Mapping[str, Path]) -> Selection:
    """Select files by their names in an archive; no rule leaves out a file that is named.

    ArchiveError: one cannot be read. ArchiveTooLargeError: they are over the limit.
    """
    found = Selection(tuple(_entry(name, path) for name, path in sorted(files.items())), ())
    most = DEFAULT_LIMITS.most_bytes
    if found.size_bytes > most:
        names = ", ".join(map(str, files.values()))
        raise ArchiveTooLargeError(
            f"{names}: More than {most / 1024**2:,.0f} MiB; put large data into a bucket or volume."
        )
    return found


def _entry(name: str, path: Path) -> Entry:
    try:
        found = path.stat()
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror}.") from error
    return Entry(name, Kind.FILE, found.st_size, is_executable=bool(found.st_mode & 0o100))


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
