"""Room on the portal's disk: new work is refused before it is full, so that running work goes on.

Below the reserve nothing new begins. Below a quarter of it runners keep their lines for a while, so
that the database never meets the last byte. Both end by themselves when there is room again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings

from jobs.errors import FramesPostponedError, StorageFullError

MIB = 1024 * 1024
_DEFAULT_RESERVE = 512 * MIB
# Of a disk too small for the default reserve, this part must do.
_SMALL_DISK_PART = 20
_LAST_PART = 4
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The disk of the data directory, in bytes, as anyone but root may use it."""

    free: int
    total: int
    reserve: int

    @property
    def shortage(self) -> str:
        """The sentence that explains why new work has to wait; "" while there is room."""
        if self.free >= self.reserve:
            return ""
        return (
            f"The portal's disk is nearly full: {self.free // MIB:,} MiB of {self.total // MIB:,} "
            f"MiB are free, and new work begins above {-(-self.reserve // MIB):,} MiB."
        )

    @property
    def is_exhausted(self) -> bool:
        """Whether even the frames of running jobs have to wait."""
        return self.free < self.reserve // _LAST_PART


def disk_space() -> DiskSpace:
    """Measure the disk as it is now, with one system call."""
    try:
        found = os.statvfs(settings.MPORTAL_HOME)
    except FileNotFoundError:
        return DiskSpace(0, 0, 0)  # nothing is kept there
    total = found.f_blocks * found.f_frsize
    return DiskSpace(found.f_bavail * found.f_frsize, total, _reserve(total))


def shortage() -> str:
    """Return the sentence that explains why new work has to wait; "" while there is room."""
    return disk_space().shortage


def require_room() -> None:
    """Raise StorageFullError while no new work may begin."""
    if why := shortage():
        raise StorageFullError(
            f"{why} Running jobs go on. Delete jobs you no longer need, or have the portal's "
            "administrator make room; then try again."
        )


def require_room_for_frames() -> None:
    """Raise FramesPostponedError while runners must keep their frames."""
    if disk_space().is_exhausted:
        raise FramesPostponedError


def is_full_disk(error: BaseException) -> bool:
    """Whether a full disk or quota is the error, or a cause of it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, StorageFullError):
            return True
        if isinstance(cause, OSError) and cause.errno in _FULL:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


@contextmanager
def refused_when_full() -> Iterator[None]:
    """Raise StorageFullError in place of the system's error for a full disk or quota."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StorageFullError from error
        raise


def _reserve(total: int) -> int:
    own: int = settings.MPORTAL_DISK_RESERVE_MB
    if own >= 0:
        return own * MIB
    return min(_DEFAULT_RESERVE, total // _SMALL_DISK_PART)
