"""Decisions which jobs start now, and why the others wait.

`order` says in which order jobs are considered, `rules` what blocks one, `warm` on which machines
it starts. Gangs are whole: a job gets all of its nodes, or none.

A job that fits no quota of its own waits and delays no other. For the first that fits its quotas
but not the machines there is a `reservation`; a later job that needs some of the same machines
starts only where that does not delay it. For such a first one others may be stopped, where its
pool allows that (`preemption`).
"""

from __future__ import annotations

from collections.abc import Iterator

from jobs.scheduling.blockers import of_victim
from jobs.scheduling.causes import Behind, NoRoom, Preempted, StoppedForIt
from jobs.scheduling.limits import LimitKind
from jobs.scheduling.order import Order
from jobs.scheduling.pool_groups import claimants, pool_groups
from jobs.scheduling.preemption import victims, without_leaving
from jobs.scheduling.room import Room
from jobs.scheduling.rules import Rules
from jobs.scheduling.snapshot import (
    Decision,
    Preempt,
    QueuedJob,
    Refuse,
    RunningJob,
    Snapshot,
    Start,
    Wait,
)
from jobs.scheduling.warm import bind


def plan(snapshot: Snapshot) -> list[Decision]:
    """Return one decision for each queued job, in the scheduling order."""
    planner = _Planner(snapshot)
    decisions: list[Decision] = []
    for order, job in _turns(snapshot):
        decision = planner.decide(job)
        decisions.append(decision)
        if planner.had_its_turn(decision):
            order.charge(job)
    return bind(decisions, snapshot)


def _turns(snapshot: Snapshot) -> Iterator[tuple[Order, QueuedJob]]:
    """Yield the scheduling order: jobs with preempted machines first, then each group of pools."""
    claiming = claimants(snapshot)
    orders = [
        Order(
            pools,
            [job for job in jobs if job.job_id not in claiming] if claiming else jobs,
            snapshot,
        )
        for pools, jobs in pool_groups(snapshot)
    ]
    for job in claiming.values():
        yield next(order for order in orders if job.shape.pool in order.pools), job
    for order in orders:
        for job in order:
            yield order, job


# Stored, since each is read for every job: what waits for machines alone, what gets some.
_FOR_MACHINES = frozenset({NoRoom, Behind, StoppedForIt, Preempted})
_GETS_MACHINES = (Start, Preempt)


class _Planner:
    """A planner that decides job by job, in the scheduling order, by the remaining capacity."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._room = Room(snapshot)
        self._rules = Rules(self._room)

    def decide(self, job: QueuedJob) -> Decision:
        """Return the decision for the next job."""
        blocker = self._rules.blocker(job)
        if blocker is None:
            self._room.start(job)
            return Start(job.job_id, "" if job.cluster is None else job.cluster.name)
        if isinstance(blocker, str):
            return Refuse(job.job_id, blocker)
        if self._room.reserved.has_place(job) and (decision := self._taking_back(job)):
            return decision
        return Wait(job.job_id, of_victim(job, blocker) if job.stopped_for else blocker)

    @staticmethod
    def had_its_turn(decision: Decision) -> bool:
        """Whether it counts as the project's turn: it started, or waits for machines alone."""
        if isinstance(decision, Wait):
            return type(decision.cause) in _FOR_MACHINES
        return isinstance(decision, _GETS_MACHINES)

    def _taking_back(self, job: QueuedJob) -> Decision | None:
        """Decide what to preempt for the first job that waits for machines; None: nothing.

        Nothing is stopped for a job that delays another first: that one would get the machines.
        """
        allowed = self._snapshot.preemption.get(job.shape.pool)
        if allowed is None:
            return None
        chosen: list[RunningJob] = []
        room = self._room
        if allowed.is_on and room.reserved.let_beside(job):
            # What this plan starts makes no project a borrower whose older jobs would be victims.
            others = {
                key: limit
                for key, limit in self._snapshot.limits.items()
                if limit.kind == LimitKind.PROJECT and key not in job.shape.limits
            }
            left = without_leaving({**room.limits, **others}, room.running)
            chosen = victims(job, room.running, left, allowed)
        going = [each for each in room.running if each.stopped_for == job.job_id]
        if not chosen and not going:
            return None
        room.count_on(chosen, job)
        both = sorted([*going, *chosen], key=lambda each: each.job_id)
        numbers = tuple(each.job_id for each in both)
        cause = StoppedForIt(numbers, sum(each.shape.num_nodes for each in both))
        if not chosen:
            return Wait(job.job_id, cause)
        return Preempt(job.job_id, tuple(each.job_id for each in chosen), cause)
