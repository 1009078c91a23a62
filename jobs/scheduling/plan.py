"""Which jobs start now, and why the others wait. `order` says whose turn it is, `limits` what fits.

A job that fits no quota of its own waits and holds back nobody. The first that fits its quotas but
not the machines holds a place for itself (`reservation`); whoever comes after it in its pool starts
only where that costs it nothing. Gangs are whole: a job gets all of its nodes, or none.

For that first one of a pool others may be stopped, where the pool says so (`preemption`).

A job goes onto a cluster of its project that was kept at once, also ahead of its turn: the
machines are taken already.
"""

from __future__ import annotations

import math
from dataclasses import replace

from jobs.scheduling.amounts import counted
from jobs.scheduling.causes import (
    Behind,
    Cause,
    GaveWay,
    NoPrice,
    NoRoom,
    OverQuota,
    StoppedForIt,
    Told,
)
from jobs.scheduling.kept import Guest, KeptCluster, Wish, fits, why_not
from jobs.scheduling.limits import Limit, LimitKind, Shape, binding
from jobs.scheduling.order import Order, by_pool
from jobs.scheduling.preemption import victims, without_kept, without_leaving
from jobs.scheduling.reservation import Reservation, reserve
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
    """One decision for each queued job, pool by pool, in the order of their turns."""
    planner = _Planner(snapshot)
    decisions: list[Decision] = []
    for pool, jobs in by_pool(snapshot.queued).items():
        order = Order(pool, jobs, snapshot)
        for job in order:
            decision = planner.decide(job)
            decisions.append(decision)
            if planner.had_its_turn(decision):
                order.charge(job)
    return decisions


# Kept, since each is asked for every job: what waits for machines alone, what gets some.
_FOR_MACHINES = (NoRoom, Behind, StoppedForIt, GaveWay)
_GETS_MACHINES = (Start, Preempt)


class _Planner:
    """What is left while a plan is made. Room only ever shrinks, so what did not fit never will."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._now_s = snapshot.now_s
        self._limits = {key: limit.copy() for key, limit in snapshot.limits.items()}
        self._kept = [replace(each, guests=list(each.guests)) for each in snapshot.kept]
        named = {job.wish.cluster for job in snapshot.queued if job.wish is not None}
        # A kept cluster that a queued job names is not given back: its data is there.
        self._running = without_kept(snapshot.running, named)
        self._reserved: dict[str, Reservation] = {}
        self._behind: dict[str, Behind] = {}
        self._firsts: set[int] = set()  # the jobs that have a place held
        # Answers that hold for all jobs of a shape until the plan is done; and after how many
        # starts a shape was last seen to fit.
        self._told: dict[Shape, Cause | str] = {}
        self._fitted: dict[Shape, int] = {}
        self._starts = 0

    def decide(self, job: QueuedJob) -> Decision:
        """What becomes of the job whose turn it is."""
        if told := self._snapshot.barred.get(job.project_id):
            return Wait(job.job_id, Told(told[1], told[0]))
        if job.wish is not None and (decision := self._onto_kept(job, job.wish)) is not None:
            return decision
        shape = job.shape
        cause = self._told.get(shape)
        if cause is None:
            cause = self._obstacle(job)
        if cause is None:
            return self._start(job)
        if isinstance(cause, str):
            return Refuse(job.job_id, cause)
        if job.job_id in self._firsts and (decision := self._taking_back(job, cause)) is not None:
            return decision
        return Wait(job.job_id, _of_victim(job, cause) if job.stopped_for else cause)

    @staticmethod
    def had_its_turn(decision: Decision) -> bool:
        """Whether it counts as the project's turn: it started, or waits for machines alone."""
        if isinstance(decision, Wait):
            return isinstance(decision.cause, _FOR_MACHINES)
        return isinstance(decision, _GETS_MACHINES)

    def _obstacle(self, job: QueuedJob) -> Cause | str | None:
        """What keeps a job from starting on machines of its own; a text if it always will."""
        shape = job.shape
        if self._fitted.get(shape) != self._starts:
            if (cause := self._over_a_limit(job)) is not None:
                return cause
            self._fitted[shape] = self._starts
        reserved = self._reserved.get(shape.pool)
        if reserved is not None and not reserved.lets_pass(job, self._now_s):
            return self._behind[shape.pool]
        return None

    def _over_a_limit(self, job: QueuedJob) -> Cause | str | None:
        shape = job.shape
        if problem := self._snapshot.problems.get(shape.backend_name):
            return self._for_all(shape, Told(problem))
        if (over := self._over_a_quota(shape)) is not None:
            return self._for_all(shape, over)
        if (never := self._never(shape)) is not None:
            return self._for_all(shape, never)
        for limit, what in binding(shape, self._limits, machines=True):
            if shape.pool in self._reserved:
                return self._for_all(shape, self._behind[shape.pool])
            return _no_room(limit, what, shape, self._reserve(job).at_s)
        return None

    def _over_a_quota(self, shape: Shape) -> Cause | None:
        if (unpriced := self._no_price(shape)) is not None:
            return unpriced
        over = binding(shape, self._limits, machines=False)
        return next((_over(limit, what, shape) for limit, what in over), None)

    def _no_price(self, shape: Shape) -> Cause | None:
        """What keeps it from being counted in a limit of money."""
        if shape.unpriced is not None:
            return NoPrice(shape.unpriced)
        limits = (self._limits[key] for key in shape.limits)
        others = (limit.unpriced for limit in limits if limit.unpriced is not None)
        return next((NoPrice(of=other) for other in others), None)

    def _never(self, shape: Shape) -> Cause | str | None:
        """More than there is at all, for which no place is held.

        What a backend has is a fact, and the job is refused. What a pool has is what somebody wrote
        down: the job waits until it is written otherwise.
        """
        for key in shape.limits:
            limit = self._limits[key]
            what = limit.never_has(shape.demand) if limit.kind.is_machines else None
            if what and limit.kind == LimitKind.BACKEND:
                needed = counted(what, shape.amount(what))
                return f"Needs {needed}, but {limit.name} has {limit.caps[what]:g} in all."
            if what:
                return _no_room(limit, what, shape)
        return None

    def _for_all(self, shape: Shape, cause: Cause | str) -> Cause | str:
        self._told[shape] = cause
        return cause

    def _reserve(self, job: QueuedJob) -> Reservation:
        made = reserve(job, self._running, self._limits)
        self._reserved[job.shape.pool] = made
        self._behind[job.shape.pool] = Behind(job.job_id)
        self._firsts.add(job.job_id)
        return made

    def _taking_back(self, job: QueuedJob, cause: Cause) -> Decision | None:
        """What is done for the first of a pool that waits for room; None: nothing can be."""
        allowed = self._snapshot.preemption.get(job.shape.pool)
        if allowed is None:
            return None
        left = without_leaving(self._limits, self._running)
        chosen = victims(job, self._running, left, allowed)
        stopped = [each for each in chosen if not each.kept]
        going = [each for each in self._running if each.stopped_for == job.job_id]
        if not chosen and not going:
            return None
        told = _of_victim(job, cause)
        if both := sorted([*going, *stopped], key=lambda each: each.job_id):
            numbers = tuple(each.job_id for each in both)
            told = StoppedForIt(numbers, sum(each.shape.num_nodes for each in both))
        if not chosen:
            return Wait(job.job_id, told)
        self._count_on(chosen, job)
        kept = tuple(each.kept for each in chosen if each.kept)
        return Preempt(job.job_id, tuple(each.job_id for each in stopped), told, kept)

    def _count_on(self, chosen: list[RunningJob], job: QueuedJob) -> None:
        """Hold the place for `job` at once: nobody may fill it until those have given theirs up."""
        self._running = [
            replace(each, is_leaving=True, ends_s=self._now_s) if each in chosen else each
            for each in self._running
        ]
        given_back = {each.kept for each in chosen if each.kept}
        for cluster in self._kept:
            cluster.is_ready = cluster.is_ready and cluster.name not in given_back
        self._reserve(job)

    def _start(self, job: QueuedJob) -> Start:
        for key in job.shape.limits:
            self._limits[key].take(job.shape.demand)
        self._starts += 1
        ends_s = None if job.duration_s is None else self._now_s + job.duration_s
        self._running.append(RunningJob(job.job_id, job.shape, ends_s))
        return Start(job.job_id)

    def _onto_kept(self, job: QueuedJob, wish: Wish) -> Decision | None:
        """What becomes of a job that goes onto a kept cluster; None: it takes a new one."""
        if problem := self._snapshot.problems.get(job.shape.backend_name):
            return Wait(job.job_id, Told(problem))
        if wish.cluster:
            return self._onto_named(job, wish)
        for cluster in self._kept:
            if fits(wish, cluster) and self._has_room(job, cluster):
                return self._let_in(job, wish, cluster)
        return None

    def _onto_named(self, job: QueuedJob, wish: Wish) -> Decision:
        wanted = (wish.project_id, wish.cluster)
        there = (each for each in self._kept if (each.project_id, each.name) == wanted)
        cluster = next(there, None)
        if cluster is None or cluster.num_nodes < job.shape.num_nodes:
            return Refuse(job.job_id, f"The project keeps no cluster {wish.cluster} any more.")
        if why := why_not(wish, cluster):
            return Wait(job.job_id, Told(why))
        shape = cluster.as_guest(job.shape)
        if (over := self._over_a_quota(shape)) is not None:
            return Wait(job.job_id, over)
        if not self._has_room(job, cluster):
            message = f"Cluster {cluster.name} is switched off; there is no room for it."
            return Wait(job.job_id, Told(message))
        return self._let_in(job, wish, cluster)

    def _has_room(self, job: QueuedJob, cluster: KeptCluster) -> bool:
        """Whether its nodes are on, or there is room for them; and no quota keeps the job back."""
        switched_on, shape = cluster.switched_on(job.shape), cluster.as_guest(job.shape)
        if self._no_price(shape) is not None:
            return False
        for key in shape.limits:
            limit = self._limits[key]
            if limit.lacks(switched_on if limit.kind.is_machines else shape.demand):
                return False
        reserved = None if cluster.is_on else self._reserved.get(shape.pool)
        # What is switched off has no machines: it waits for them as others do.
        return reserved is None or reserved.lets_pass(job, self._now_s)

    def _let_in(self, job: QueuedJob, wish: Wish, cluster: KeptCluster) -> Start:
        switched_on, shape = cluster.switched_on(job.shape), cluster.as_guest(job.shape)
        for key in shape.limits:
            limit = self._limits[key]
            limit.take(switched_on if limit.kind.is_machines else shape.demand)
        self._starts += 1
        cluster.is_on = True
        cluster.guests.append(Guest(job.job_id, wish.port, wish.wants_gpus))
        self._running = without_kept(self._running, {cluster.name})
        return Start(job.job_id, onto_kept=True)


def _of_victim(job: QueuedJob, cause: Cause) -> Cause:
    """What is told to one that was stopped for another: that, and what it waits for now."""
    if job.stopped_for and isinstance(cause, (NoRoom, Behind)):
        return GaveWay(job.stopped_for, cause)
    return cause


def _over(limit: Limit, what: str, shape: Shape) -> OverQuota:
    return OverQuota(
        limit=str(limit.kind),
        name=limit.name,
        what=what,
        needed=shape.amount(what),
        used=limit.used.get(what, 0.0),
        cap=limit.caps[what],
    )


def _no_room(limit: Limit, what: str, shape: Shape, at_s: float = math.inf) -> NoRoom:
    return NoRoom(
        place=limit.name,
        what=what,
        needed=shape.amount(what),
        free=limit.free(what) or 0.0,
        total=limit.caps[what],
        kept=limit.kept,
        expected_s=None if at_s == math.inf else at_s,
    )
