"""Several folders as one tree: each under its own name, or its content at the top."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from monarch_client.errors import ArchiveError
from monarch_client.runner.code import manifest
from monarch_client.runner.code.manifest import digest_of
from monarch_client.sync.scanning import Scanner, Snapshot

Folder = str | os.PathLike[str]


@dataclass(frozen=True)
class MergedSnapshot(Snapshot):
    """The content of several folders; `parts` are their snapshots by name, "" for the top."""

    parts: tuple[tuple[str, Snapshot], ...] = ()

    def locate(self, path: str) -> tuple[Path, str]:
        """Return the folder of this machine that a file is in, and its path there."""
        for name, part in self.parts:
            inside = path.removeprefix(f"{name}/") if name else path
            if inside in part.files and (not name or inside != path):
                return part.folder, inside
        raise KeyError(path)


class FolderSet:
    """One or several folders of this machine whose code makes one work directory.

    As with rsync, `src` is put there under its name, and of `src/` or `.` the content. A single
    folder is always the work directory itself. ArchiveError: there is no such folder.
    """

    def __init__(self, folders: Folder | Sequence[Folder]) -> None:
        given = [folders] if isinstance(folders, str | os.PathLike) else list(folders)
        if not given:
            raise ArchiveError("Name at least one folder of code.")
        self._scanners = [(_name_of(each, len(given)), _scanner(each)) for each in given]

    @property
    def folders(self) -> list[Path]:
        """Return the folders."""
        return [scanner.folder for _, scanner in self._scanners]

    def paths_in(self, folder: Path, changed: Sequence[str]) -> list[str]:
        """Return those of the changed paths that are in one of the folders, from there."""
        name = next(name for name, scanner in self._scanners if scanner.folder == folder)
        if not name:
            return list(changed)
        return [path.removeprefix(f"{name}/") for path in changed if path.startswith(f"{name}/")]

    def note_reads(self, on_read: Callable[[int], None]) -> None:
        """Call `on_read` with the size of each file that is read."""
        for _, scanner in self._scanners:
            scanner.on_read = on_read

    def scan(self) -> Snapshot:
        """Return the content of all folders. ArchiveError: also for two with the same path."""
        parts = [(name, scanner.scan()) for name, scanner in self._scanners]
        if len(parts) == 1 and not parts[0][0]:
            return parts[0][1]
        top: dict[str, manifest.Entry] = {}
        manifests: dict[str, bytes] = {}
        files: dict[str, manifest.File | manifest.Link] = {}
        for name, part in parts:
            below = f"{name}/" if name else ""
            manifests.update(part.manifests)
            files.update({below + path: each for path, each in part.files.items()})
            inside: dict[str, manifest.Entry] = {name: manifest.Folder(part.tree)}
            if not name:
                inside = manifest.parse(part.manifests[part.tree])
            if both := sorted(inside.keys() & top.keys()):
                raise ArchiveError(f"{both[0]} is in two of the folders. Rename one of them.")
            top.update(inside)
        content = manifest.encode(top)
        manifests[digest_of(content)] = content
        folder = parts[0][1].folder
        return MergedSnapshot(folder, digest_of(content), manifests, files, tuple(parts))


def _name_of(folder: Folder, count: int) -> str:
    text = os.fspath(folder)
    is_content = count == 1 or text.endswith("/") or Path(text) == Path()
    return "" if is_content else Path(text).expanduser().absolute().name


def _scanner(folder: Folder) -> Scanner:
    path = Path(folder).expanduser().absolute()
    if not path.is_dir():
        raise ArchiveError(f"There is no folder at {path}. Name the folder of the code.")
    return Scanner(path)
