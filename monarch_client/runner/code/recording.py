"""Record a folder of this node as a tree: the code with which a job started."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.code.errors import CodeError, FormatError
from monarch_client.runner.code.manifest import BLOCK_BYTES, File, Folder, Link, encode
from monarch_client.runner.vocabulary.limits import MAX_ARCHIVE_BYTES
from monarch_client.runner.vocabulary.names import is_ordinary_name, is_ordinary_path

if TYPE_CHECKING:
    from monarch_client.runner.code.manifest import Entries, Entry
    from monarch_client.runner.code.store import Store
    from monarch_client.runner.code.trees import Trees

# Of git, and of the runner: they are no code.
_LEFT_OUT = {".git"}


class Recording:
    """The recorder of a folder; a second time it reads the files that have changed alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # By path, with what the file system says of the file as it was read.
        self._files: dict[Path, tuple[tuple[int, ...], File]] = {}

    def record(self, folder: Path) -> str:
        """Add the files of a folder to the store, and return the name of its tree.

        Sockets and other special files are left out. CodeError: a file changes meanwhile, a name
        is not UTF-8, or the folder is larger than an upload may be.
        """
        entries: Entries = {}
        if self._store.size_bytes > MAX_ARCHIVE_BYTES:
            raise CodeError(f"the work directory has more than {MAX_ARCHIVE_BYTES // 1024**3} GiB")
        with os.scandir(folder) as found:
            for entry in found:
                if entry.name in _LEFT_OUT:
                    continue
                if not is_ordinary_name(entry.name):
                    raise FormatError(f"{entry.path!a} is not a name that every node can have")
                recorded = self._entry(entry)
                if recorded is not None:
                    entries[entry.name] = recorded
        return self._store.add(encode(entries))

    def _entry(self, entry: os.DirEntry[str]) -> Entry | None:
        path = Path(entry.path)
        if entry.is_symlink():
            # Path would tidy the text of the link.
            target = os.readlink(path)
            if not is_ordinary_path(target):
                raise FormatError(f"the target of the link {entry.path!a} is not a path")
            return Link(target)
        if entry.is_dir():
            return Folder(self.record(path))
        return self._file(path) if entry.is_file() else None

    def record_changes(self, folder: Path, tree: str, trees: Trees) -> str:
        """Return the tree of what a folder still has of a tree, with its files as they are now.

        A path that is of another kind by now, or cannot be read, is no code any more.
        """
        entries: Entries = {}
        for name, entry in trees.entries(tree).items():
            path = folder / name
            try:
                mode = path.lstat().st_mode
                if isinstance(entry, Folder) and stat.S_ISDIR(mode):
                    entries[name] = Folder(self.record_changes(path, entry.digest, trees))
                elif isinstance(entry, Link) and stat.S_ISLNK(mode):
                    if os.readlink(path) == entry.target:
                        entries[name] = entry
                elif isinstance(entry, File) and stat.S_ISREG(mode):
                    entries[name] = self._file(path)
            except (FileNotFoundError, PermissionError):
                continue
        return self._store.add(encode(entries))

    def _file(self, path: Path) -> File:
        known = self._files.get(path)
        with path.open("rb") as source:
            status = os.fstat(source.fileno())
            version = (
                *(status.st_dev, status.st_ino, status.st_size, status.st_mode),
                *(status.st_mtime_ns, status.st_ctime_ns),
            )
            if known is not None and known[0] == version:
                return known[1]
            blocks = []
            size = 0
            while block := source.read(BLOCK_BYTES):
                blocks.append(self._store.add(block))
                size += len(block)
                if size > MAX_ARCHIVE_BYTES:
                    raise CodeError(f"{path} is larger than {MAX_ARCHIVE_BYTES // 1024**3} GiB")
            if size != os.fstat(source.fileno()).st_size:
                raise CodeError(f"{path} changes while it is read")
        file = File(size, tuple(blocks), bool(status.st_mode & stat.S_IXUSR))
        self._files[path] = (version, file)
        return file
