"""Submit the jobs of due schedules."""

from __future__ import annotations

import logging

from jobs.actions.schedules.run_schedule import run_due
from jobs.background.exclusive import LockSpace, exclusive
from jobs.ground import clock
from jobs.models import Schedule
from jobs.policies.schedules import MOST_CAUGHT_UP

log = logging.getLogger(__name__)


def due() -> list[int]:
    """Return the schedules whose next time has come."""
    return list(Schedule.objects.due(clock.now()).values_list("pk", flat=True))


def step(schedule_id: int) -> None:
    """Handle all due times of one schedule. Safe to repeat.

    Rows guard against double runs. The lock only prevents two checks of the same specification.
    """
    with exclusive(LockSpace.SCHEDULES, schedule_id) as alone:
        turns = MOST_CAUGHT_UP if alone else 0
        for _ in range(turns):
            if not run_due(schedule_id):
                return
