"""Objects on disk, in one file without a name: the kernel frees it with the store's process."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from pathlib import Path
from typing import IO

from monarch_client.context.objects.allocation import Allocator

# Far more than a disk has: how much it can take is known by writing only.
_MOST = 1 << 60
_CHUNK = 16 * 1024 * 1024


class SpillFile:
    """Ranges of a file below a directory, made with the first one. Its methods raise OSError."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._allocator = Allocator(_MOST)
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None

    @property
    def used(self) -> int:
        """The bytes of the objects on disk."""
        return self._allocator.used

    def write(self, contents: memoryview) -> int:
        """Write an object, and return its offset."""
        with self._lock:
            descriptor = self._opened().fileno()
            offset = self._allocator.allocate(contents.nbytes)
        if offset is None:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        try:
            done = 0
            while done < contents.nbytes:
                done += os.pwrite(descriptor, contents[done : done + _CHUNK], offset + done)
        except OSError:
            self.remove(offset)
            raise
        return offset

    def read(self, offset: int, target: memoryview) -> None:
        """Read an object into memory. EOFError: the file is shorter."""
        with self._lock:
            descriptor = self._opened().fileno()
        done = 0
        while done < target.nbytes:
            count = os.preadv(descriptor, [target[done : done + _CHUNK]], offset + done)
            if not count:
                raise EOFError(f"the spill file in {self.directory} is too short")
            done += count

    def remove(self, offset: int) -> None:
        """Free an object's range, and the disk behind the last range."""
        with self._lock:
            self._allocator.free(offset)
            end, file = self._allocator.high_water, self._opened()
            if os.fstat(file.fileno()).st_size > end:
                file.truncate(end)

    def close(self) -> None:
        """Free the disk."""
        with self._lock:
            if self._file is not None:
                self._file.close()

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(prefix="objects-", dir=self.directory, buffering=0)  # noqa: SIM115 - closed by `close`
        return self._file
