"""The blocks that a node holds, each in a file named by its digest.

A block appears whole or not at all: it is written beside its name and renamed. Nothing is flushed
to the disk; content is compared with its name when it is read, so what a crash of the machine or
a user's program has changed counts as missing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from monarch_client.runner.code.errors import BlockMissingError, FormatError
from monarch_client.runner.code.manifest import MAX_BLOCK_BYTES, digest_of, is_digest

if TYPE_CHECKING:
    from typing import Container, Iterable

_READ_ONLY = 0o444
# Files that are not whole yet.
DRAFT = ".draft-"
# The digest of no content, which is never stored.
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
# Times of files depend on their content alone, in 2001 to 2022: Python takes a compiled file for
# current if its source has the same size and second.
_FIRST_SECOND = 1_000_000_000
_SECONDS = 650_000_000


def stamp_of(digest: str) -> int:
    """Return the second that a file with this content carries as its time of modification."""
    return _FIRST_SECOND + int(digest[:15], 16) % _SECONDS


class Store:
    """The blocks below `folder`. Safe from any thread; one process at a time uses a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        folder.mkdir(parents=True, exist_ok=True)
        # The number of blocks that were removed: what was complete before may not be now.
        self.losses = 0
        # The oldest first.
        self._sizes: dict[str, int] = {}
        self._load()
        self._size_bytes = sum(self._sizes.values())

    @property
    def size_bytes(self) -> int:
        """Return the total size of the blocks."""
        return self._size_bytes

    def size_of(self, digests: Iterable[str]) -> int:
        """Return the total size of those blocks that are here."""
        return sum(self._sizes.get(each, 0) for each in digests)

    def has(self, digest: str) -> bool:
        """Whether the block is here."""
        return digest in self._sizes

    def missing(self, digests: Iterable[str]) -> list[str]:
        """Return the blocks that are not here, each once, in order."""
        return [each for each in dict.fromkeys(digests) if each not in self._sizes]

    def add(self, content: bytes, digest: str = "") -> str:
        """Add a block and return its name.

        FormatError if it is too large or not the block `digest`; OSError if it cannot be written.
        """
        if len(content) > MAX_BLOCK_BYTES:
            raise FormatError(f"a block of {len(content):,} bytes is too large")
        name = digest_of(content)
        if digest and digest != name:
            raise FormatError(f"the block {digest[:12]} arrived damaged")
        if not self.has(name):
            self._write(name, content)
        return name

    def read(self, digest: str) -> bytes:
        """Return the content of a block. BlockMissingError if it is not here, or damaged."""
        content = None
        if self.has(digest):
            with contextlib.suppress(OSError):
                content = self.path_of(digest).read_bytes()
        if content is None or digest_of(content) != digest:
            self.forget(digest)
            raise BlockMissingError(digest)
        return content

    def path_of(self, digest: str) -> Path:
        """Return the file of a block."""
        if not is_digest(digest):
            raise FormatError(f"{digest[:100]!a} is not the name of a block")
        return self._folder / digest[:2] / digest

    def forget(self, digest: str) -> None:
        """Remove a block."""
        with self._lock:
            size = self._sizes.pop(digest, None)
            if size is not None:
                self.losses += 1
                self._size_bytes -= size
                with contextlib.suppress(FileNotFoundError):
                    self.path_of(digest).unlink()

    def collect(self, used: Container[str], most_bytes: int) -> None:
        """Remove the oldest blocks that are not in `used`, until the others are small enough."""
        for digest in list(self._sizes):
            if self._size_bytes <= most_bytes:
                return
            if digest not in used:
                self.forget(digest)

    def _write(self, name: str, content: bytes) -> None:
        # Without `Path`, which takes longer than the kernel: a tree has up to 100,000 blocks.
        draft = f"{self._folder}/{DRAFT}{os.getpid()}-{next(self._numbers)}"
        try:
            with open(draft, "xb") as file:  # noqa: PTH123
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), _READ_ONLY)
                os.utime(file.fileno(), (stamp_of(name), stamp_of(name)))
            self._rename(draft, name)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)  # noqa: PTH108
            raise
        with self._lock:
            if name not in self._sizes:
                self._sizes[name] = len(content)
                self._size_bytes += len(content)

    def _rename(self, draft: str, name: str) -> None:
        path = f"{self._folder}/{name[:2]}/{name}"
        try:
            os.rename(draft, path)  # noqa: PTH104
        except FileNotFoundError:
            self.path_of(name).parent.mkdir(exist_ok=True)
            os.rename(draft, path)  # noqa: PTH104

    def _load(self) -> None:
        found = []
        for folder in self._folder.iterdir():
            if folder.name.startswith(DRAFT):
                folder.unlink()
                continue
            with os.scandir(folder) as entries:
                for entry in entries:
                    status = entry.stat()
                    found.append((status.st_ctime_ns, entry.name, status.st_size))
        self._sizes = {name: size for _, name, size in sorted(found) if is_digest(name)}
