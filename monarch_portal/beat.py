"""How beat sends its ticks: by a steady clock, and only while a worker takes them."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any

import redis
from celery.beat import ScheduleEntry, Scheduler

# Ticks wait for a worker that is away, but never more messages than it works off in a moment.
MOST_WAITING = 50

_BEGAN = datetime.now(timezone.utc) - timedelta(seconds=time.monotonic())


def steady_now() -> datetime:
    """A time that nobody can set: only its differences mean anything."""
    return _BEGAN + timedelta(seconds=time.monotonic())


class PatientScheduler(Scheduler):
    """Leaves a tick out while the queue is long: whoever works it off gets the next one."""

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send the tick, unless too much waits already."""
        if self._waiting() < MOST_WAITING:
            super().apply_entry(entry, producer=producer)

    def _waiting(self) -> int:
        from jobs.ground.redis_client import connection  # noqa: PLC0415 - settings come first

        try:
            return int(connection().llen(self.app.conf.task_default_queue))
        except redis.RedisError:
            return 0  # the sending says what is wrong
