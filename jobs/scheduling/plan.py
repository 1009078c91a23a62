"""Which jobs start now, and why the others wait. `order` says whose turn it is, `limits` what fits.

A job that fits no quota of its own waits and holds back nobody. The first that fits its quotas but
not the machines holds a place for itself (`reservation`); whoever comes after it and needs some of
the same machines starts only where that costs it nothing. Gangs are whole: a job gets all of its
nodes, or none.

For such a first one others may be stopped, where its pool says so (`preemption`).

A job goes onto a cluster of its project that was kept at once, also ahead of its turn: the
machines are taken already. Only who has waited for longer than the pool's patience, or stands in a
higher queue, is not put off by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jobs.scheduling.causes import Behind, Cause, GaveWay, NoRoom, StoppedForIt, Told
from jobs.scheduling.kept import KeptCluster, Wish, fits, why_not
from jobs.scheduling.limits import LimitKind, Shape, binding, scarce_for
from jobs.scheduling.obstacles import never, no_room, of_victim, over_a_quota
from jobs.scheduling.order import Order
from jobs.scheduling.places import owed_now, sharing_machines
from jobs.scheduling.preemption import victims, without_leaving
from jobs.scheduling.room import Room
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


def plan(snapshot: Snapshot) -> list[Decision]:
    """One decision for each queued job, in the order of their turns."""
    planner = _Planner(snapshot)
    decisions: list[Decision] = []
    for order, job in _turns(snapshot):
        decision = planner.decide(job)
        decisions.append(decision)
        if planner.had_its_turn(decision):
            order.charge(job)
    return decisions


def _turns(snapshot: Snapshot) -> Iterator[tuple[Order, QueuedJob]]:
    """Whose turn it is: those who are owed machines, then all others, of each group of pools."""
    owed = owed_now(snapshot)
    orders = [
        Order(pools, [job for job in jobs if job.job_id not in owed] if owed else jobs, snapshot)
        for pools, jobs in sharing_machines(snapshot)
    ]
    for job in owed.values():
        yield next(order for order in orders if job.shape.pool in order.pools), job
    for order in orders:
        for job in order:
            yield order, job


# Kept, since each is asked for every job: what waits for machines alone, what gets some.
_FOR_MACHINES = frozenset({NoRoom, Behind, StoppedForIt, GaveWay})
_GETS_MACHINES = (Start, Preempt)


class _Planner:
    """Decides job by job, in the order of their turns, by what is left then."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._now_s, self._barred = snapshot.now_s, snapshot.barred
        self._left = Room(snapshot)
        self._reserved = self._left.reserved
        self._firsts: set[int] = set()  # the jobs that have a place held
        # Answers that hold for all jobs of a shape until the plan is done; and after how many
        # changes of what is left a shape was last seen to fit.
        self._told: dict[Shape, Cause | str] = {}
        self._fitted: dict[Shape, int] = {}

    def decide(self, job: QueuedJob) -> Decision:
        """What becomes of the job whose turn it is."""
        if self._barred and (told := self._barred.get(job.project_id)):
            return Wait(job.job_id, Told(told[1], told[0]))
        if job.wish is not None and (decision := self._onto_kept(job, job.wish)) is not None:
            return decision
        shape = job.shape
        cause = self._told.get(shape)
        if cause is None:
            cause = self._obstacle(job)
        if cause is None:
            self._left.start(job)
            return Start(job.job_id)
        if isinstance(cause, str):
            return Refuse(job.job_id, cause)
        if job.job_id in self._firsts and (decision := self._taking_back(job, cause)) is not None:
            return decision
        return Wait(job.job_id, of_victim(job, cause) if job.stopped_for else cause)

    @staticmethod
    def had_its_turn(decision: Decision) -> bool:
        """Whether it counts as the project's turn: it started, or waits for machines alone."""
        if isinstance(decision, Wait):
            return type(decision.cause) in _FOR_MACHINES
        return isinstance(decision, _GETS_MACHINES)

    def _obstacle(self, job: QueuedJob) -> Cause | str | None:
        """What keeps a job from starting on machines of its own; a text if it always will."""
        shape = job.shape
        if self._fitted.get(shape) != self._left.changes:
            if (cause := self._over_a_limit(job)) is not None:
                return cause
            self._fitted[shape] = self._left.changes
        return self._reserved.stop(job, job.until_s(self._now_s))

    def _over_a_limit(self, job: QueuedJob) -> Cause | str | None:
        shape = job.shape
        if problem := self._snapshot.problems.get(shape.backend_name):
            return self._for_all(shape, Told(problem))
        if (over := over_a_quota(shape, self._left.limits)) is not None:
            return self._for_all(shape, over)
        if (too_much := never(shape, self._left.limits)) is not None:
            return self._for_all(shape, too_much)
        cause = self._held_back(job)
        if isinstance(cause, Behind):
            return self._for_all(shape, cause)
        if cause is not None:
            self._firsts.add(job.job_id)
        return cause

    def _held_back(self, job: QueuedJob) -> NoRoom | Behind | None:
        """What a job waits for that has too little room: a place is held for it, or others."""
        limits = self._left.limits
        for limit, what in binding(job.shape, limits, machines=True):
            if (behind := self._reserved.first_in(scarce_for(job.shape, limits))) is not None:
                return behind
            made = self._reserved.hold(job, self._left.running, limits)
            return no_room(limit, what, job.shape, made.at_s)
        return None

    def _for_all(self, shape: Shape, cause: Cause | str) -> Cause | str:
        self._told[shape] = cause
        return cause

    def _taking_back(self, job: QueuedJob, cause: Cause) -> Decision | None:
        """What is done for the first who waits for room; None: nothing can be.

        Nobody is stopped for one that puts off another first: that one would have the machines.
        """
        allowed = self._snapshot.preemption.get(job.shape.pool)
        if allowed is None:
            return None
        chosen: list[RunningJob] = []
        if allowed.is_on and self._reserved.let_beside(job):
            # What this plan starts makes nobody a borrower whose older jobs would go for it.
            others = {
                key: limit
                for key, limit in self._snapshot.limits.items()
                if limit.kind == LimitKind.PROJECT and key not in job.shape.limits
            }
            left = without_leaving({**self._left.limits, **others}, self._left.running)
            chosen = victims(job, self._left.running, left, allowed)
        stopped = [each for each in chosen if not each.kept]
        going = [each for each in self._left.running if each.stopped_for == job.job_id]
        if not chosen and not going:
            return None
        self._left.count_on(chosen, job)
        told = of_victim(job, cause)
        if both := sorted([*going, *stopped], key=lambda each: each.job_id):
            numbers = tuple(each.job_id for each in both)
            told = StoppedForIt(numbers, sum(each.shape.num_nodes for each in both))
        if not chosen:
            return Wait(job.job_id, told)
        kept = tuple(each.kept for each in chosen if each.kept)
        return Preempt(job.job_id, tuple(each.job_id for each in stopped), told, kept)

    def _onto_kept(self, job: QueuedJob, wish: Wish) -> Decision | None:
        """What becomes of a job that goes onto a kept cluster; None: it takes a new one."""
        if problem := self._snapshot.problems.get(job.shape.backend_name):
            return Wait(job.job_id, Told(problem))
        if wish.cluster:
            return self._onto_named(job, wish)
        for cluster in self._left.kept:
            if fits(wish, cluster) and self._left.lets_in(job, cluster):
                self._left.let_in(job, wish, cluster)
                return Start(job.job_id, cluster.name)
        return None

    def _onto_named(self, job: QueuedJob, wish: Wish) -> Decision:
        wanted = (wish.project_id, wish.cluster)
        there = (each for each in self._left.kept if (each.project_id, each.name) == wanted)
        cluster = next(there, None)
        if cluster is None or cluster.num_nodes < job.shape.num_nodes:
            return Refuse(job.job_id, f"The project keeps no cluster {wish.cluster} any more.")
        if why := why_not(wish, cluster):
            return Wait(job.job_id, Told(why))
        shape = cluster.as_guest(job.shape)
        if (over := over_a_quota(shape, self._left.limits)) is not None:
            return Wait(job.job_id, over)
        if not self._left.lets_in(job, cluster):
            return Wait(job.job_id, self._keeps_off(job, cluster))
        self._left.let_in(job, wish, cluster)
        return Start(job.job_id, cluster.name)

    def _keeps_off(self, job: QueuedJob, cluster: KeptCluster) -> Cause:
        """Why a cluster that a job names is not switched on: it waits for room as others do."""
        needed = replace(job.shape, demand=cluster.switched_on(job.shape))
        too_much = never(needed, self._left.limits)
        if too_much is not None:
            return Told(too_much) if isinstance(too_much, str) else too_much
        if (cause := self._held_back(replace(job, shape=needed))) is not None:
            return cause
        behind = self._reserved.stop(job, self._left.until_s(job, cluster), needed.demand)
        return behind or Told(f"Cluster {cluster.name} is switched off.")
