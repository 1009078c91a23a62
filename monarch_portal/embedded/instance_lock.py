"""The lock by which at most one portal runs on a home.

The kernel releases it however its holder ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class InstanceLock:
    """An exclusive lock on a file, which contains the process id of its holder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def acquire(self) -> bool:
        """Take the lock; False if another portal has it."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        self.sign()
        return True

    def sign(self) -> None:
        """Write down that this process, perhaps a fork of the one that took it, has the lock."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode(), 0)

    def leave(self) -> None:
        """Close a fork's copy of the lock, so that the lock ends with its holder."""
        os.close(self._fd)

    def holder(self) -> int | None:
        """Return the id of the process that holds the lock; None if no process does."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(os.pread(fd, 20, 0) or b"0") or None
        else:
            return None
        finally:
            os.close(fd)

    def wait_until_free(self, timeout_s: float) -> bool:
        """Whether the lock became free within the time-out."""
        deadline = time.monotonic() + timeout_s
        while self.holder() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True
