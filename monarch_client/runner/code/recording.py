"""Record a folder of this node as a tree: the code with which a job started."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.code.errors import CodeError
from monarch_client.runner.code.manifest import BLOCK_BYTES, File, Folder, Link, encode
from monarch_client.runner.vocabulary.limits import MAX_ARCHIVE_BYTES

if TYPE_CHECKING:
    from monarch_client.runner.code.manifest import Entries
    from monarch_client.runner.code.store import Store

# Of git, and of the runner: they are no code.
_LEFT_OUT = {".git"}


def record(folder: Path, store: Store) -> str:
    """Add the files of a folder to the store, and return the name of its tree.

    Sockets and other special files are left out. CodeError: a file changes meanwhile, or the
    folder is larger than an upload may be.
    """
    entries: Entries = {}
    if store.size_bytes > MAX_ARCHIVE_BYTES:
        raise CodeError(f"the work directory has more than {MAX_ARCHIVE_BYTES // 1024**3} GiB")
    with os.scandir(folder) as found:
        for entry in found:
            if entry.name in _LEFT_OUT:
                continue
            path = Path(entry.path)
            if entry.is_symlink():
                # Path would tidy the text of the link.
                entries[entry.name] = Link(os.readlink(path))
            elif entry.is_dir():
                entries[entry.name] = Folder(record(path, store))
            elif entry.is_file():
                entries[entry.name] = _record_file(path, store)
    return store.add(encode(entries))


def _record_file(path: Path, store: Store) -> File:
    blocks = []
    size = 0
    with path.open("rb") as file:
        while True:
            block = file.read(BLOCK_BYTES)
            if not block:
                break
            blocks.append(store.add(block))
            size += len(block)
            if size > MAX_ARCHIVE_BYTES:
                raise CodeError(f"{path} is larger than {MAX_ARCHIVE_BYTES // 1024**3} GiB")
        status = os.fstat(file.fileno())
    if size != status.st_size:
        raise CodeError(f"{path} changes while it is read")
    return File(size, tuple(blocks), bool(status.st_mode & stat.S_IXUSR))
