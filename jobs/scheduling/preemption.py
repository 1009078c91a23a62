"""The choice of victims for a job that waits: never more than it needs.

Two forms, each switched on for a pool by itself. Rank: from jobs of lower queues. Reclaim: a
project that stays within its nominal share of a contended resource reclaims it from those that
borrow beyond theirs, in no higher queue. No victim can retaliate: one stopped by rank is
lower, and one stopped as a borrower is beyond its share.

Victims are taken in the order: lowest queue, most borrowed, started last; then each is let go
again, the last one first, if the rest is enough. What is coming free anyway counts as free. Jobs
between which only their age decides are one group, and there is a heap of groups: n log n.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from jobs.scheduling.limits import GPUS, JOBS, Limit, LimitKind, Shape
from jobs.scheduling.snapshot import Preemption, QueuedJob, RunningJob


def without_leaving(limits: Mapping[str, Limit], running: Iterable[RunningJob]) -> dict[str, Limit]:
    """Return `limits` without the running jobs that are leaving; the argument stays as it was."""
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
    """Choose the victims so that `job` has machines; none if it has them, or all were not enough.

    `limits` are those of `without_leaving`; they stay as they are.
    """
    if not (scarce := _scarce(job, limits)):
        return []
    in_reach = [each for each in running if _is_in_reach(each, job)]
    left = _copies([job.shape, *{each.shape for each in in_reach}], limits)
    takes_back = allowed.reclaim and _within_nominal(job, left, scarce)
    groups: dict[tuple[object, ...], _Group] = {}
    for each in in_reach:
        by_right = allowed.by_rank and each.rank < job.rank
        if by_right or (takes_back and each.project_id != job.project_id):
            parts = _parts(each.shape, left)
            key = (by_right, each.rank, parts)
            groups.setdefault(key, _Group(not by_right, parts)).members.append(each)
    chosen: list[RunningJob] = []
    for each in _in_turn(groups.values(), left):
        chosen.append(each)
        _count(left, each, -1)
        if not _scarce(job, left):
            return _spared(job, chosen, left)
    return []


# A project's own part of what a job takes: the key of the limit, and what is counted.
Parts = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Group:
    """Jobs between which only their age decides. `borrows`: they go only while it does."""

    borrows: bool
    parts: Parts
    members: list[RunningJob] = field(default_factory=list)

    def turn(self, left: Mapping[str, Limit]) -> tuple[float, ...]:
        """Return the sort key of the group's last member; the least first."""
        last = self.members[-1]
        borrowed = _borrowed(self.parts, left)
        return (last.rank, -borrowed, -last.began_s, -last.job_id)


def _in_turn(groups: Collection[_Group], left: Mapping[str, Limit]) -> Iterator[RunningJob]:
    """Yield the victims one after the other; count each off `left` before requesting the next.

    A project that lost a job borrows less from then on, and comes later: so no key becomes less
    than the last one computed, and each is computed again only when its group is the next.
    """
    for group in groups:
        group.members.sort(key=lambda each: (each.began_s, each.job_id))
    heap = [(group.turn(left), number, group) for number, group in enumerate(groups)]
    heapq.heapify(heap)
    while heap:
        seen, number, group = heap[0]
        if group.borrows and _borrowed(group.parts, left) <= 0:
            heapq.heappop(heap)
        elif (turn := group.turn(left)) != seen:
            heapq.heapreplace(heap, (turn, number, group))
        else:
            yield group.members.pop()
            if group.members:
                heapq.heapreplace(heap, (group.turn(left), number, group))
            else:
                heapq.heappop(heap)


def _spared(job: QueuedJob, chosen: list[RunningJob], left: dict[str, Limit]) -> list[RunningJob]:
    """Return the jobs of `chosen` that are needed. `left` is the capacity without all of them."""
    needed = []
    for each in reversed(chosen):
        # Its project borrows the more for it: other projects to reclaim from stay the same.
        _count(left, each, 1)
        if _scarce(job, left):
            _count(left, each, -1)
            needed.append(each)
    return needed[::-1]


def _is_in_reach(each: RunningJob, job: QueuedJob) -> bool:
    if each.is_leaving or each.shape.pool != job.shape.pool:
        return False
    return each.is_preemptible and each.rank <= job.rank


def _copies(shapes: Iterable[Shape], limits: Mapping[str, Limit]) -> dict[str, Limit]:
    """Copy the limits that a choice of victims checks."""
    keys = {key for shape in shapes for key in shape.limits}
    return {
        key: limits[key].copy()
        for key in keys
        if limits[key].kind.is_machines or limits[key].kind == LimitKind.PROJECT
    }


def _scarce(job: QueuedJob, limits: Mapping[str, Limit]) -> set[str]:
    """Return the resources of machines that are too few for it."""
    # Quotas of persons, queues and groups are not among those that a choice of victims looks at.
    known = (limits[key] for key in job.shape.limits if key in limits)
    rooms = [limit for limit in known if limit.kind.is_machines]
    return {each[0] for room in rooms for each in job.shape.demand if room.lacks((each,))}


def _within_nominal(job: QueuedJob, limits: Mapping[str, Limit], scarce: Iterable[str]) -> bool:
    """Whether what is scarce is its project's own part, which it does not exceed with this job.

    A part of the requested GPUs is one of the nodes that they are in, too.
    """
    shape = job.shape
    parts = _parts(shape, limits)
    named = {what for _, what in parts}
    has_gpus = any(what.split(":")[0] == GPUS for what in named)
    if not all(what in named or (has_gpus and what != JOBS) for what in scarce):
        return False
    return all(
        limits[key].used.get(what, 0.0) + shape.amount(what) <= limits[key].nominal[what]
        for key, what in parts
    )


def _parts(shape: Shape, limits: Mapping[str, Limit]) -> Parts:
    """Return the part of the shape that counts in its project's nominal share."""
    return tuple(
        (key, what)
        for key in shape.limits
        if limits.get(key) is not None and limits[key].kind == LimitKind.PROJECT
        for what in limits[key].nominal
        if shape.amount(what)
    )


def _borrowed(parts: Parts, limits: Mapping[str, Limit]) -> float:
    """Return how much a project has beyond its nominal share, of the resource it exceeds most."""
    beyond = (limits[key].used.get(what, 0.0) - limits[key].nominal[what] for key, what in parts)
    return max(0.0, max(beyond, default=0.0))


def _count(limits: Mapping[str, Limit], each: RunningJob, sign: int) -> None:
    amounts = tuple((what, sign * amount) for what, amount in each.shape.demand)
    for key in each.shape.limits:
        limit = limits.get(key)
        if limit is not None and each.holds_of(limit):
            limit.take(amounts)
