"""The files of generations: read-only, with the times of their content, linked where possible."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import shutil
import stat
from typing import TYPE_CHECKING

from monarch_client.runner.code.errors import FormatError
from monarch_client.runner.code.manifest import BLOCK_BYTES, digest_of
from monarch_client.runner.code.store import DRAFT, EMPTY, stamp_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Collection

    from monarch_client.runner.code.manifest import File
    from monarch_client.runner.code.store import Store

_MODE, _EXECUTABLE_MODE = 0o444, 0o555
_SECOND_NS = 1_000_000_000
_ZEROS = bytes(BLOCK_BYTES)
# No more links to a file, or none at all on this file system.
_NO_LINKS = {errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP}


class Contents:
    """A maker of files from the blocks of a store.

    A file of one block is a link to the block. Files of several blocks and executable ones are
    put together once, below `folder`.
    """

    def __init__(self, folder: Path, store: Store) -> None:
        self._folder = folder
        self._store = store
        self._numbers = itertools.count()
        # The number of files and blocks that were put in their place, to see that work gets on.
        self.moves = 0
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob(f"{DRAFT}*"):
            path.unlink()

    def is_as_wanted(self, status: os.stat_result, file: File) -> bool:
        """Whether what was found at a path is this file, by its size, time and mode."""
        return (
            status.st_size == file.size
            and status.st_mtime_ns == stamp_of(_key_of(file)) * _SECOND_NS
            and status.st_mode == stat.S_IFREG | _mode_of(file)
        )

    def has_content(self, path: Path, status: os.stat_result, file: File) -> bool:
        """Whether the file at a path has this content; it is read only if that is in doubt."""
        if self.is_as_wanted(status, file):
            return True
        if status.st_size != file.size:
            return False
        with path.open("rb") as source:
            return all(digest_of(source.read(BLOCK_BYTES)) == each for each in file.blocks)

    def place(self, file: File, path: Path) -> None:
        """Make the file at a path where there is none.

        BlockMissingError; FormatError: its blocks do not have its size; OSError.
        """
        self.moves += 1
        if not file.size:
            path.touch(exist_ok=False)
            _seal(path, file)
            return
        source = self._source_of(file)
        try:
            os.link(source, path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with source.open("rb") as content, path.open("xb") as copy:
                shutil.copyfileobj(content, copy)
            _seal(path, file)

    def collect(self, used: Collection[File]) -> None:
        """Remove the files that were put together and are not used any more."""
        keys = {_key_of(file) for file in used}
        for path in list(self._folder.iterdir()):
            if path.name not in keys:
                path.unlink()

    def _source_of(self, file: File) -> Path:
        is_block = len(file.blocks) == 1 and not file.is_executable
        path = self._store.path_of(file.blocks[0]) if is_block else self._folder / _key_of(file)
        with contextlib.suppress(FileNotFoundError):
            if self.is_as_wanted(path.stat(), file):
                return path
        if is_block:
            # A program has changed it, or it is not as long as the manifest promises.
            block = self._checked(file.blocks[0], file.size)
            self._store.forget(file.blocks[0])
            self._store.add(block)
        else:
            self._put_together(file, path)
        return path

    def _block(self, digest: str, length: int) -> bytes:
        """Return a block of this length. Of one that nothing has touched the hash is known."""
        with contextlib.suppress(OSError):
            path = self._store.path_of(digest)
            status = path.stat()
            if status.st_size == length and status.st_mtime_ns == stamp_of(digest) * _SECOND_NS:
                return path.read_bytes()
        return self._checked(digest, length)

    def _checked(self, digest: str, length: int) -> bytes:
        block = self._store.read(digest)
        if len(block) != length:
            raise FormatError("a file does not have the size of its blocks")
        return block

    def _put_together(self, file: File, path: Path) -> None:
        draft = self._folder / f"{DRAFT}{os.getpid()}-{next(self._numbers)}"
        try:
            with draft.open("xb") as target:
                for number, digest in enumerate(file.blocks):
                    self.moves += 1
                    length = min(BLOCK_BYTES, file.size - number * BLOCK_BYTES)
                    block = self._block(digest, length)
                    if block == _ZEROS:
                        # A hole: a sparse file stays one.
                        target.seek(length, os.SEEK_CUR)
                    else:
                        target.write(block)
                target.truncate(file.size)
            _seal(draft, file)
            draft.rename(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                draft.unlink()


def _key_of(file: File) -> str:
    """Return the digest that names the content and mode of a file."""
    if not file.blocks:
        return EMPTY
    if len(file.blocks) == 1 and not file.is_executable:
        return file.blocks[0]
    text = ("x" if file.is_executable else "-") + "".join(file.blocks)
    return hashlib.sha256(text.encode()).hexdigest()


def _mode_of(file: File) -> int:
    return _EXECUTABLE_MODE if file.is_executable else _MODE


def _seal(path: Path, file: File) -> None:
    path.chmod(_mode_of(file))
    second = stamp_of(_key_of(file))
    os.utime(path, (second, second))
