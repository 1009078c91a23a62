"""Beat's ticks: how often each reconciler looks for work that no hint reported.

A tick is one message that names the reconcilers that are due. The worker that takes it sends a
hint to those that have work, so an idle portal handles less than one message a second.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any

import redis
from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule

from jobs.background.hints import Reconciler
from jobs.ground.redis_client import connection

TICK_S = 1
# Seconds between two turns of a reconciler, in whole ticks. Hints drive the work; this bounds how
# long a lost one costs.
INTERVALS_S: dict[Reconciler, int] = {
    "queue": 2,
    "dependencies": 2,
    "children": 5,
    "provisioning": 3,
    "running": 3,
    "recovering": 3,
    "stopping": 3,
    "teardown": 3,
    "autostop": 5,
    "log_policies": 3,
    "gateway": 5,
    # No hint reports that a schedule is due: this is how late its job may be.
    "schedules": 3,
    "sealing": 10,
    "billing": 10,
    "budgets": 5,
    "prices": 5,
    "job_budgets": 5,
    "infra": 10,
    "orphans": 60,
    # Short for daily work, because beat forgets its times when it restarts.
    "retention": 600,
}

# The name of the task that takes a tick.
TICK = "jobs.tick"

# A worker that returns finds at most this many ticks, which it works off in a moment.
MAX_WAITING = 50

_ORIGIN = datetime(2000, 1, 1, tzinfo=timezone.utc)


def steady_now() -> datetime:
    """Return a steady time: no clock change affects it, and only its differences mean anything."""
    return _ORIGIN + timedelta(seconds=time.monotonic())


def beat_schedule() -> dict[str, dict[str, Any]]:
    """Return Celery's `beat_schedule`.

    No tick expires: that is a time of day, which the worker's host may already have passed.
    """
    return {"tick": {"task": TICK, "schedule": schedule(TICK_S, nowfun=steady_now)}}


def names_at(number: int) -> list[Reconciler]:
    """Return the reconcilers to check in tick `number`; the first tick is 1."""
    return [name for name, seconds in INTERVALS_S.items() if number * TICK_S % seconds == 0]


class BoundedScheduler(Scheduler):
    """Celery's scheduler in memory, which skips ticks while no worker takes them."""

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send the tick, unless too many messages wait or no reconciler is to be checked."""
        names = names_at(entry.total_run_count + 1)
        if names and self._waiting() < MAX_WAITING:
            entry.args = (names,)
            super().apply_entry(entry, producer=producer)

    def adjust(self, n: float, drift: float = 0.0) -> float:
        """Return `n`, the seconds until the next tick.

        Celery's drift of -10 ms ends each wait too early, and the rest of it is a busy loop.
        """
        return n + drift

    def _waiting(self) -> int:
        try:
            return int(connection().llen(self.app.conf.task_default_queue))
        except redis.RedisError:
            return 0  # the sending says what is wrong
