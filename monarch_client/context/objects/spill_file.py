"""Objects on disk, in one file without a name: the kernel frees it with the store's process."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from pathlib import Path

from monarch_client.context.objects.allocation import Allocator

# Far more than a disk has: how much it can take is known by writing only.
_MOST = 1 << 60
_CHUNK = 16 * 1024 * 1024


class SpillFile:
    """Ranges of a file below a directory. Its methods raise OSError."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._allocator = Allocator(_MOST)
        self._lock = threading.Lock()
        directory.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(prefix="objects-", dir=directory, buffering=0)  # noqa: SIM115 - closed by `close`

    @property
    def used(self) -> int:
        """The bytes of the objects on disk."""
        return self._allocator.used

    def write(self, contents: memoryview) -> int:
        """Write an object, and return its offset."""
        with self._lock:
            offset = self._allocator.allocate(contents.nbytes)
        if offset is None:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        try:
            self._write_at(offset, contents)
        except OSError:
            self.remove(offset)
            raise
        return offset

    def _write_at(self, offset: int, contents: memoryview) -> None:
        done = 0
        while done < contents.nbytes:
            chunk = contents[done : done + _CHUNK]
            done += os.pwrite(self._file.fileno(), chunk, offset + done)

    def read(self, offset: int, target: memoryview) -> None:
        """Read an object into memory. EOFError: the file is shorter."""
        done = 0
        while done < target.nbytes:
            chunk = target[done : done + _CHUNK]
            count = os.preadv(self._file.fileno(), [chunk], offset + done)
            if not count:
                raise EOFError(f"the spill file in {self.directory} is too short")
            done += count

    def remove(self, offset: int) -> None:
        """Free an object's range, and the disk behind the last range."""
        with self._lock:
            self._allocator.free(offset)
            end = self._allocator.high_water
            if os.fstat(self._file.fileno()).st_size > end:
                self._file.truncate(end)

    def close(self) -> None:
        """Free the disk."""
        self._file.close()
