"""The clock for all times that one process writes and another compares.

One clock decides: the database's. Clocks of the portal's machines may differ by minutes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from django.core.exceptions import SynchronousOnlyOperation
from django.db import Error, connection
from django.utils import timezone

MEASURED_EVERY_S = 60.0
# The interval after a failed reading: the database is unavailable, or answers slowly.
LOOK_AGAIN_S = 5.0
# The answer was true at some time during the round trip: a slow one is of little use.
LONGEST_TRIP_S = 0.5
# This process's clock was set, or its machine slept: the last reading is void.
_LEAP_S = 1.0


@dataclass(frozen=True, slots=True)
class Reading:
    """The database's time at one moment of this process's clocks."""

    server_time: datetime
    at: float  # monotonic
    own: datetime
    trip_s: float


class DatabaseClock:
    """The database's time: its last reading, advanced by this process's steady clock."""

    def __init__(self, read: Callable[[], Reading | None]) -> None:
        self._read = read
        self._last: Reading | None = None
        self._looked_at = -math.inf
        self._rest_s = 0.0
        self._lock = Lock()

    def now(self) -> datetime:
        """Return the database's time; this process's own until the first reading."""
        # One thread reads, the others use the last reading; all wait only for the first one.
        if self._is_due() and self._lock.acquire(blocking=self._last is None):
            try:
                if self._is_due():
                    self._look()
            finally:
                self._lock.release()
        last = self._last
        if last is None:
            return timezone.now()
        return last.server_time + timedelta(seconds=time.monotonic() - last.at)

    def _is_due(self) -> bool:
        rest_s = LOOK_AGAIN_S if self._leapt() else self._rest_s
        return time.monotonic() - self._looked_at >= rest_s

    def _leapt(self) -> bool:
        last = self._last
        if last is None:
            return False
        by_own = (timezone.now() - last.own).total_seconds()
        return abs(by_own - (time.monotonic() - last.at)) > _LEAP_S

    def _look(self) -> None:
        reading = self._read()
        good = reading is not None and reading.trip_s <= LONGEST_TRIP_S
        if good or self._last is None:
            self._last = reading
        self._rest_s = MEASURED_EVERY_S if good else LOOK_AGAIN_S
        self._looked_at = time.monotonic()


def read_database_clock() -> Reading | None:
    """Ask on the caller's connection. None: the database is away, or this is an event loop."""
    try:
        with connection.cursor() as cursor:
            own, requested_at = timezone.now(), time.monotonic()
            cursor.execute("SELECT clock_timestamp()")
            (server_time,) = cursor.fetchone()
    except (Error, SynchronousOnlyOperation):
        return None
    trip_s = time.monotonic() - requested_at
    return Reading(
        server_time, requested_at + trip_s / 2, own + timedelta(seconds=trip_s / 2), trip_s
    )


THE_CLOCK = DatabaseClock(read_database_clock)


def now() -> datetime:
    """Return the time of the database, in UTC."""
    return THE_CLOCK.now()
