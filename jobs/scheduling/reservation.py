"""The place that is held for the first who waits for machines: EASY backfill (Lifka, 1995).

From the bounds of what runs follows the earliest moment at which there surely is room for it.
Others may start before it only where that moment stays as it is: those that end before it, and
those that fit beside it. Where nothing bounds what runs there is no such moment, and nobody may
start on what it has too little of.

A place is held in every limit of machines that the job needs, whichever pool others come from.

Who goes onto a cluster that was kept takes nothing that is free, but puts off the end of what the
moment may count on. For as long as the pool's patience it may, where it is of no lower queue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.scheduling.causes import Behind
from jobs.scheduling.limits import Amounts, Limit, LimitKind, Shape, scarce_for
from jobs.scheduling.snapshot import QueuedJob, RunningJob

Limits = Mapping[str, Limit]


@dataclass(slots=True)
class Reservation:
    """`at_s`: when `job` starts at the latest, math.inf if nothing says so.

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
        """For which job it is."""
        return self.job.job_id

    @property
    def held(self) -> Iterable[str]:
        """The limits in which its place is held."""
        return self.scarce if self.at_s == math.inf else self.spare

    def lets_pass(self, shape: Shape, demand: Amounts, begin_s: float, until_s: float) -> bool:
        """Whether its moment stays as it is if another has machines until then.

        They are `demand`, in the limits of `shape`, and would be free from `begin_s` on else.
        """
        return self._is_unmoved(begin_s, until_s) or self.has_beside(shape, demand)

    def has_beside(self, shape: Shape, demand: Amounts) -> bool:
        """Whether there is room for both of them at its moment."""
        if self.at_s == math.inf or shape in self._too_big:
            return False
        if all(_fits(demand, self.spare[key]) for key in shape.limits if key in self.spare):
            return True
        if demand is shape.demand:
            self._too_big.add(shape)
        return False

    def let_pass(self, shape: Shape, demand: Amounts, begin_s: float, until_s: float) -> None:
        """Take of the spare what the other has then; also where it lacks it.

        What is owed for that is no spare of whoever comes next.
        """
        if not self._is_unmoved(begin_s, until_s):
            self.take_beside(shape, demand)

    def take_beside(self, shape: Shape, demand: Amounts) -> None:
        """Take this of the spare."""
        for spare in (self.spare[key] for key in shape.limits if key in self.spare):
            for what, amount in demand:
                if what in spare:
                    spare[what] -= amount

    def _is_unmoved(self, begin_s: float, until_s: float) -> bool:
        """Whether the other is over by then, or the moment does not count on what it has."""
        return until_s <= self.at_s < math.inf or begin_s > self.at_s or begin_s == math.inf


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
        """Behind whom those wait that have no room in these limits: all have a first already."""
        if not self._firsts:
            return None
        firsts = [self._firsts.get(key) for key in scarce]
        return firsts[0] if firsts and all(firsts) else None

    def stop(self, job: QueuedJob, until_s: float, demand: Amounts | None = None) -> Behind | None:
        """Behind whom `job`, which has room, waits. None: it starts, and what it takes is taken.

        It has them until `until_s`. `demand`: where it takes other machines than it asks for.
        """
        if not self._held:
            return None
        taken = job.shape.demand if demand is None else demand
        return self._stop(job.shape, taken, -math.inf, until_s, ())

    def stop_guest(
        self,
        job: QueuedJob,
        until_s: float,
        demand: Amounts,
        begin_s: float,
        bears: Callable[[QueuedJob], bool],
    ) -> Behind | None:
        """The same of one that goes onto machines that are on, all of which are `demand`.

        They would be free from `begin_s` on else. `bears` says who is put off by it all the same.
        """
        if not self._held:
            return None
        borne = {each.job_id for each in self._concerned(job.shape) if bears(each.job)}
        return self._stop(job.shape, demand, begin_s, until_s, borne)

    def _stop(
        self,
        shape: Shape,
        demand: Amounts,
        begin_s: float,
        until_s: float,
        borne: Collection[int],
    ) -> Behind | None:
        concerned = self._concerned(shape)
        for each in concerned:
            if each.lets_pass(shape, demand, begin_s, until_s) or each.job_id in borne:
                continue
            return self._behind[each.job_id]
        for each in concerned:
            each.let_pass(shape, demand, begin_s, until_s)
        return None

    def let_beside(self, job: QueuedJob) -> bool:
        """Whether `job`, a first itself, puts off no other first if it has machines soon."""
        others = [each for each in self._concerned(job.shape) if each.job_id != job.job_id]
        return all(each.has_beside(job.shape, job.shape.demand) for each in others)

    def take_beside(self, job: QueuedJob) -> None:
        """What it will have is no spare of others any more."""
        for each in self._concerned(job.shape):
            if each.job_id != job.job_id:
                each.take_beside(job.shape, job.shape.demand)

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
    """The earliest moment at which `job` surely fits its machines, if nobody but `others` starts.

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
    # Who waits for its full pool, without an end, keeps nobody from the rest of its backend.
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
