"""Beat's ticks: how often each reconciler looks for work that no hint reported."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any

import redis
from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule

from jobs.background.hints import Reconciler
from jobs.ground.redis_client import connection

# Seconds between two ticks. Hints drive the work; this bounds how long a lost one costs.
INTERVALS_S: dict[Reconciler, float] = {
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
    return {
        f"jobs.{name}": {"task": f"jobs.{name}", "schedule": schedule(seconds, nowfun=steady_now)}
        for name, seconds in INTERVALS_S.items()
    }


class BoundedScheduler(Scheduler):
    """Celery's scheduler in memory, which skips ticks while no worker takes them."""

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send the tick, unless too many messages wait already."""
        if self._waiting() < MAX_WAITING:
            super().apply_entry(entry, producer=producer)

    def _waiting(self) -> int:
        try:
            return int(connection().llen(self.app.conf.task_default_queue))
        except redis.RedisError:
            return 0  # the sending says what is wrong
