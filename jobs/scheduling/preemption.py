"""Whose machines are taken back for a job that waits, and that it is never more than it takes.

Two forms, each switched on for a pool by itself. Rank: from jobs of lower queues. Reclaim: a
project that stays within its nominal part takes back from those who borrow beyond theirs, in no
higher queue. Nobody can answer in kind: whoever was stopped by rank stands lower, and whoever was
stopped as a borrower is beyond its part.

Clusters that were kept and have no job go first: a job is stopped only where they are not enough.
Victims are taken in the order: lowest queue, most borrowed, started last; then each is let go
again, the last one first, if the rest is enough. What is coming free anyway counts as free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from jobs.scheduling.limits import Limit, LimitKind
from jobs.scheduling.snapshot import Preemption, QueuedJob, RunningJob


def without_leaving(limits: Mapping[str, Limit], running: Iterable[RunningJob]) -> dict[str, Limit]:
    """`limits` as they are once those are gone that are going; as they were, they stay."""
    leaving = [each for each in running if each.is_leaving]
    left = dict(limits)
    for key in {key for each in leaving for key in each.shape.limits}:
        left[key] = limits[key].copy()
    for each in leaving:
        _count(left, each, -1)
    return left


def victims(
    job: QueuedJob,
    running: Iterable[RunningJob],
    limits: Mapping[str, Limit],
    allowed: Preemption,
) -> list[RunningJob]:
    """Whom to stop so that `job` has machines; nobody if it has them, or all were not enough.

    Those with `kept` are machines alone, which are given back.
    `limits` are those of `without_leaving`; they stay as they are.
    """
    left = {key: limit.copy() for key, limit in limits.items()}
    if _has_room(job, left):
        return []
    takes_back = allowed.reclaim and _within_nominal(job, left)
    in_reach = [each for each in running if _is_in_reach(each, job)]
    chosen: list[RunningJob] = []
    while not _has_room(job, left):
        may = (
            each
            for each in in_reach
            if (each.kept and allowed.is_on)
            or (allowed.by_rank and each.rank < job.rank)
            or (takes_back and each.project_id != job.project_id and _borrowed(each, left) > 0)
        )
        worst = min(may, key=lambda each: _first_to_go(each, left), default=None)
        if worst is None:
            return []
        in_reach.remove(worst)
        chosen.append(worst)
        _count(left, worst, -1)
    return _spared(job, chosen, left)


def _spared(job: QueuedJob, chosen: list[RunningJob], left: dict[str, Limit]) -> list[RunningJob]:
    """Those of `chosen` without whom it is too little. `left` is what there is without them."""
    needed = list(chosen)
    for each in reversed(chosen):
        # Its project borrows the more for it: whoever else was one to take back from still is.
        _count(left, each, 1)
        if _has_room(job, left):
            needed.remove(each)
        else:
            _count(left, each, -1)
    return needed


def _is_in_reach(each: RunningJob, job: QueuedJob) -> bool:
    if each.is_leaving or each.shape.pool != job.shape.pool:
        return False
    return bool(each.kept) or (each.is_preemptible and each.rank <= job.rank)


def _has_room(job: QueuedJob, limits: Mapping[str, Limit]) -> bool:
    rooms = (limits[key] for key in job.shape.limits if limits[key].kind.is_machines)
    return not any(room.lacks(job.shape.demand) for room in rooms)


def _within_nominal(job: QueuedJob, limits: Mapping[str, Limit]) -> bool:
    """Whether its project has a nominal part, and is not beyond it with this job."""
    parts = [each for each in _projects(job.shape.limits, limits) if each.nominal]
    demand = job.shape.demand
    return bool(parts) and all(
        part.used.get(what, 0.0) + amount <= part.nominal[what]
        for part in parts
        for what, amount in demand
        if what in part.nominal
    )


def _borrowed(each: RunningJob, limits: Mapping[str, Limit]) -> float:
    """How much its project has beyond its nominal part, of what it has most of."""
    beyond = (
        part.used.get(what, 0.0) - nominal
        for part in _projects(each.shape.limits, limits)
        for what, nominal in part.nominal.items()
        if each.shape.amount(what)
    )
    return max(0.0, max(beyond, default=0.0))


def _projects(keys: Iterable[str], limits: Mapping[str, Limit]) -> list[Limit]:
    return [limits[key] for key in keys if limits[key].kind == LimitKind.PROJECT]


def _first_to_go(each: RunningJob, limits: Mapping[str, Limit]) -> tuple[float, ...]:
    is_job = 0.0 if each.kept else 1.0
    return (is_job, each.rank, -_borrowed(each, limits), -each.began_s, -each.job_id)


def _count(limits: Mapping[str, Limit], each: RunningJob, sign: int) -> None:
    amounts = tuple((what, sign * amount) for what, amount in each.shape.demand)
    for key in each.shape.limits:
        if limits[key].kind.is_machines or each.counts_in_quotas:
            limits[key].take(amounts)


def without_kept(running: Iterable[RunningJob], names: Collection[str]) -> list[RunningJob]:
    """The same, but nobody takes the clusters of these names: not what is left, nor from a job."""
    return [
        replace(each, kept="", is_preemptible=False)
        if names and (each.kept in names or each.cluster in names)
        else each
        for each in running
    ]
