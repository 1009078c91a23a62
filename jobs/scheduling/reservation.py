"""The place that is held for the first who waits for machines: EASY backfill (Lifka, 1995).

From the bounds of what runs follows the earliest moment at which there surely is room for it.
Others may start before it only where that moment stays as it is: those that end before it, and
those that fit beside it. Where nothing bounds what runs there is no such moment, and nobody may.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jobs.scheduling.limits import Amounts, Limit, Shape
from jobs.scheduling.snapshot import QueuedJob, RunningJob


@dataclass(slots=True)
class Reservation:
    """`at_s`: when `job_id` starts at the latest, math.inf if nothing says so.

    `spare`: what is left beside it then, by limit and by what is counted.
    """

    job_id: int
    at_s: float
    spare: dict[str, dict[str, float]]
    # Spare only shrinks: what did not fit beside it once never will.
    _too_big: set[Shape] = field(default_factory=set)

    def lets_pass(self, job: QueuedJob, now_s: float) -> bool:
        """Whether `job`, which fits now, may start before. What it takes of the spare is taken."""
        if self.at_s == math.inf:
            return False
        if job.duration_s is not None and now_s + job.duration_s <= self.at_s:
            return True
        if job.shape in self._too_big:
            return False
        mine = [self.spare[key] for key in job.shape.limits if key in self.spare]
        demand = job.shape.demand
        if not all(_fits(demand, spare) for spare in mine):
            self._too_big.add(job.shape)
            return False
        for spare in mine:
            for what, amount in demand:
                if what in spare:
                    spare[what] -= amount
        return True


def reserve(
    job: QueuedJob, running: Iterable[RunningJob], limits: Mapping[str, Limit]
) -> Reservation:
    """The earliest moment at which `job` surely fits its machines, if nobody else starts."""
    rooms = {key: limits[key] for key in job.shape.limits if limits[key].kind.is_machines}
    free = {
        key: {what: cap - room.used.get(what, 0.0) for what, cap in room.caps.items()}
        for key, room in rooms.items()
    }
    demand = dict(job.shape.demand)
    ending = [each for each in running if each.ends_s is not None and each.ends_s < math.inf]
    for other in sorted(ending, key=_end):
        for key in other.shape.limits:
            for what, amount in other.shape.demand if key in free else ():
                if what in free[key]:
                    free[key][what] += amount
        if all(_fits(job.shape.demand, room) for room in free.values()):
            spare = {
                key: {what: amount - demand.get(what, 0.0) for what, amount in room.items()}
                for key, room in free.items()
            }
            return Reservation(job.job_id, _end(other), spare)
    return Reservation(job.job_id, math.inf, {})


def _fits(demand: Amounts, free: Mapping[str, float]) -> bool:
    return all(amount <= free.get(what, math.inf) for what, amount in demand)


def _end(job: RunningJob) -> float:
    return math.inf if job.ends_s is None else job.ends_s
