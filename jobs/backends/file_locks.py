"""Lock files of the portal. Each wait has a limit, and only the portal's user can open the files.

A stopped process keeps its locks, so nothing that other jobs wait for may depend on one: see
`local.claims`, which admits clusters without a lock.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOOK_S = 0.02


def lock_in_time(descriptor: int, patience_s: float) -> bool:
    """Lock an open file for this process alone; False if another keeps it for `patience_s`."""
    deadline = time.monotonic() + patience_s
    while not _try_lock(descriptor):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_S)
    return True


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked_file(path: Path, patience_s: float) -> Iterator[bool]:
    """Create and lock the file for the block; yield whether the lock was acquired in time.

    Other users cannot open it, so a job with a user of its own cannot hold the lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)  # earlier versions left it readable
        yield lock_in_time(descriptor, patience_s)
    finally:
        os.close(descriptor)


def is_held(lock: Path) -> bool:
    """Whether some process has locked the file. The file belongs to the job: it may be anything."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
