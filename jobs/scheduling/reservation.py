"""The reservation for the first job that waits for machines: EASY backfill (Lifka, 1995).

From the bounds of what runs follows the earliest moment at which there surely is room for it.
Others may start before it only where that moment stays as it is: those that end before it, and
those that fit beside it. If a running job has no bound there is no such moment, and no other may
start on what it has too little of.

A reservation is in every limit of machines that the job needs, whichever pool others come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.scheduling.causes import Behind
from jobs.scheduling.limits import Amounts, Limit, LimitKind, Shape, scarce_for
from jobs.scheduling.snapshot import QueuedJob, RunningJob

Limits = Mapping[str, Limit]


@dataclass(slots=True)
class Reservation:
    """A reservation for `job`, which starts at `at_s` at the latest (math.inf if that is unknown).

    `spare`: what is left beside it then, by limit and by what is counted. `scarce`: the limits that
    have too little for it now.
    """

    job: QueuedJob
    at_s: float
    spare: dict[str, dict[str, float]]
    scarce: frozenset[str] = frozenset()
    # Spare only shrinks: what did not fit beside it once never will.
    _too_big: set[Shape] = field(default_factory=set)

    @property
    def job_id(self) -> int:
        """Number of the job that it is for."""
        return self.job.job_id

    @property
    def held(self) -> Iterable[str]:
        """Limits in which capacity is reserved."""
        return self.scarce if self.at_s == math.inf else self.spare

    def permits(self, job: QueuedJob, until_s: float) -> bool:
        """Whether its moment stays as it is if `job` has machines until then."""
        return self._is_after(until_s) or self.has_beside(job.shape)

    def has_beside(self, shape: Shape) -> bool:
        """Whether there is room for both of them at its moment."""
        if self.at_s == math.inf or shape in self._too_big:
            return False
        if all(_fits(shape.demand, self.spare[key]) for key in shape.limits if key in self.spare):
            return True
        self._too_big.add(shape)
        return False

    def let_pass(self, job: QueuedJob, until_s: float) -> None:
        """Take of the spare what `job` still has then."""
        if not self._is_after(until_s):
            self.take_beside(job.shape)

    def take_beside(self, shape: Shape) -> None:
        """Take this of the spare."""
        for spare in (self.spare[key] for key in shape.limits if key in self.spare):
            for what, amount in shape.demand:
                if what in spare:
                    spare[what] -= amount

    def _is_after(self, until_s: float) -> bool:
        return until_s <= self.at_s < math.inf


class Reservations:
    """The places that a plan holds: one for the first who waits for a limit of machines."""

    def __init__(self) -> None:
        self._firsts: dict[str, Behind] = {}  # by the limits that are scarce for the first
        self._behind: dict[int, Behind] = {}
        self._held: dict[str, dict[int, Reservation]] = {}  # by limit and job
        self._of_shape: dict[Shape, tuple[Reservation, ...]] = {}

    def hold(
        self,
        job: QueuedJob,
        running: Iterable[RunningJob],
        limits: Limits,
        *,
        beside_others: bool = True,
    ) -> Reservation:
        """Hold a place for `job`, which has too little room.

        `beside_others`: those that have a place already have their machines before it.
        """
        there = self._concerned(job.shape) if beside_others else ()
        others = [each for each in there if each.job_id != job.job_id and each.at_s < math.inf]
        made = reserve(job, running, limits, others)
        behind = self._behind.setdefault(job.job_id, Behind(job.job_id))
        for key in made.scarce:
            self._firsts.setdefault(key, behind)
        for key in job.shape.limits:
            if key in made.held:
                self._held.setdefault(key, {})[job.job_id] = made
            elif key in self._held:
                self._held[key].pop(job.job_id, None)
        self._of_shape.clear()
        return made

    def first_in(self, scarce: Sequence[str]) -> Behind | None:
        """Return the cause for jobs that these limits lack room for; None if one is unreserved."""
        if not self._firsts:
            return None
        firsts = [self._firsts.get(key) for key in scarce]
        return firsts[0] if firsts and all(firsts) else None

    def stop(self, job: QueuedJob, until_s: float) -> Behind | None:
        """Return the cause if a reservation blocks `job`, which fits; None: it starts, counted.

        It has its machines until `until_s`.
        """
        if not self._held:
            return None
        concerned = self._concerned(job.shape)
        for each in concerned:
            if not each.permits(job, until_s):
                return self._behind[each.job_id]
        for each in concerned:
            each.let_pass(job, until_s)
        return None

    def has_place(self, job: QueuedJob) -> bool:
        """Whether there is a reservation for `job`."""
        return job.job_id in self._behind

    def let_beside(self, job: QueuedJob) -> bool:
        """Whether `job`, a first itself, puts off no other first if it has machines soon."""
        others = [each for each in self._concerned(job.shape) if each.job_id != job.job_id]
        return all(each.has_beside(job.shape) for each in others)

    def take_beside(self, job: QueuedJob) -> None:
        """Take the job's capacity from what reservations leave to others."""
        for each in self._concerned(job.shape):
            if each.job_id != job.job_id:
                each.take_beside(job.shape)

    def _concerned(self, shape: Shape) -> tuple[Reservation, ...]:
        found = self._of_shape.get(shape)
        if found is None:
            held = {}
            for key in shape.limits:
                held.update(self._held.get(key, {}))
            found = self._of_shape[shape] = tuple(held[number] for number in sorted(held))
        return found


def reserve(
    job: QueuedJob,
    running: Iterable[RunningJob],
    limits: Limits,
    others: Iterable[Reservation] = (),
) -> Reservation:
    """Reserve the earliest moment at which `job` surely fits, if only `others` start before it.

    Whenever those start, which may be before their moments: what they take is not there for it.
    """
    rooms = {key: limits[key] for key in job.shape.limits if limits[key].kind.is_machines}
    scarce = frozenset(scarce_for(job.shape, limits))
    free = {
        key: {what: cap - room.used.get(what, 0.0) for what, cap in room.caps.items()}
        for key, room in rooms.items()
    }
    for other in others:
        _add(free, other.job.shape, -1)
    demand = dict(job.shape.demand)
    ending = [
        each
        for each in running
        if each.ends_s is not None
        and each.ends_s < math.inf
        and any(key in free for key in each.shape.limits)
    ]
    for ended in sorted(ending, key=_end):
        _add(free, ended.shape, 1)
        if all(_fits(job.shape.demand, room) for room in free.values()):
            spare = {
                key: {what: amount - demand.get(what, 0.0) for what, amount in room.items()}
                for key, room in free.items()
            }
            return Reservation(job, _end(ended), spare, scarce)
    # A job that waits for its full pool, without an end, blocks no job on the rest of its backend.
    of_pool = frozenset(key for key in scarce if limits[key].kind == LimitKind.POOL)
    return Reservation(job, math.inf, {}, of_pool or scarce)


def _add(free: Mapping[str, dict[str, float]], shape: Shape, sign: int) -> None:
    for room in (free[key] for key in shape.limits if key in free):
        for what, amount in shape.demand:
            if what in room:
                room[what] += sign * amount


def _fits(demand: Amounts, free: Mapping[str, float]) -> bool:
    return all(amount <= free.get(what, math.inf) for what, amount in demand)


def _end(job: RunningJob) -> float:
    return math.inf if job.ends_s is None else job.ends_s
