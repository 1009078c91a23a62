"""Submits the jobs of schedules whose time has come."""

from __future__ import annotations

import logging

from jobs.actions.schedules.run_schedule import run_due
from jobs.background.exclusive import LockSpace, exclusive
from jobs.ground import clock
from jobs.models import Schedule
from jobs.policies.schedules import MOST_CAUGHT_UP

log = logging.getLogger(__name__)


def due() -> list[int]:
    """Schedules whose next time has come."""
    return list(Schedule.objects.due(clock.now()).values_list("pk", flat=True))


def step(schedule_id: int) -> None:
    """Deal with all of one schedule's times that have come. Safe to repeat.

    What is guarded by rows is guarded without the lock too: it keeps two from checking the same
    specification.
    """
    with exclusive(LockSpace.SCHEDULES, schedule_id) as alone:
        turns = MOST_CAUGHT_UP if alone else 0
        for _ in range(turns):
            if not run_due(schedule_id):
                return
