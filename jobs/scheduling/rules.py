"""The rules that block a job, in the order in which a plan checks them. The first blocker counts.

A job that no rule blocks starts. A blocker that is a text says that it never can: it fails.
"""

from __future__ import annotations

from collections.abc import Callable

from jobs.scheduling import blockers
from jobs.scheduling.blockers import Blocker
from jobs.scheduling.limits import Shape
from jobs.scheduling.room import Room
from jobs.scheduling.snapshot import QueuedJob

Rule = Callable[[QueuedJob, Room], Blocker | None]

# What concerns one job.
OF_JOB: tuple[Rule, ...] = (
    blockers.project_is_blocked,
    blockers.named_cluster_is_gone,
    blockers.named_cluster_is_busy,
)
# What concerns all jobs that request the same: a blocker blocks them until the plan is done.
OF_SHAPE: tuple[Rule, ...] = (
    blockers.backend_is_unavailable,
    blockers.price_is_unknown,
    blockers.quota_is_used_up,
    blockers.total_is_too_small,
    blockers.another_is_first,
)
# Blocks one job: from here on there is a reservation for it, and it is the first of the others.
OF_FIRST: Rule = blockers.machines_are_in_use
# What concerns a job that fits, by its duration.
OF_BACKFILL: Rule = blockers.start_would_delay_another


class Rules:
    """The rules for one plan, which knows what they answered: jobs are many, shapes are few."""

    def __init__(self, room: Room) -> None:
        self._room, self._barred = room, room.snapshot.barred
        self._blocked: dict[Shape, Blocker] = {}
        # After how many changes of the room a shape was last seen to fit.
        self._fitted: dict[Shape, int] = {}

    def blocker(self, job: QueuedJob) -> Blocker | None:
        """Return the first blocker of the job that is next in order; None if it starts."""
        if (self._barred or job.cluster) and (found := self._first(OF_JOB, job)) is not None:
            return found
        shape = job.shape
        if (known := self._blocked.get(shape)) is not None:
            return known
        if self._fitted.get(shape) != self._room.changes:
            if (found := self._first(OF_SHAPE, job)) is not None:
                self._blocked[shape] = found
                return found
            if (found := OF_FIRST(job, self._room)) is not None:
                return found
            self._fitted[shape] = self._room.changes
        return OF_BACKFILL(job, self._room)

    def _first(self, rules: tuple[Rule, ...], job: QueuedJob) -> Blocker | None:
        answers = (rule(job, self._room) for rule in rules)
        return next((answer for answer in answers if answer is not None), None)
