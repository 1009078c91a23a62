"""Which pools share machines: their jobs stand in one queue, and others do not concern them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from jobs.scheduling.limits import Shape
from jobs.scheduling.preemption import without_leaving
from jobs.scheduling.snapshot import QueuedJob, Snapshot


def sharing_machines(snapshot: Snapshot) -> list[tuple[frozenset[str], list[QueuedJob]]]:
    """The pools that share machines, and the jobs that wait there; in the order of their names.

    What nothing limits is not shared: nobody there has less for what others take.
    """
    by_pool: dict[str, list[QueuedJob]] = defaultdict(list)
    for job in snapshot.queued:
        by_pool[job.shape.pool].append(job)
    shapes = {job.shape for job in snapshot.queued} | {each.shape for each in snapshot.running}
    groups: dict[str, set[str]] = defaultdict(set)
    for pool, root in _roots(shapes, snapshot).items():
        groups[root].add(pool)
    found = [(frozenset(pools), sorted(pools & by_pool.keys())) for pools in groups.values()]
    return [
        (pools, [job for pool in waiting for job in by_pool[pool]])
        for pools, waiting in sorted(found, key=lambda each: each[1])
        if waiting
    ]


def _roots(shapes: Iterable[Shape], snapshot: Snapshot) -> dict[str, str]:
    """Of each pool one name, which is the same for all that share machines."""
    above: dict[str, str] = {}

    def root(name: str) -> str:
        while (up := above.setdefault(name, name)) != name:
            above[name] = above[up]
            name = up
        return name

    ties = {(shape.pool, key) for shape in shapes for key in shape.limits}
    for pool, key in ties:
        limit = snapshot.limits[key]
        if limit.kind.is_machines and limit.caps:
            above[root(f"limit {key}")] = root(pool)
    return {pool: root(pool) for pool in {shape.pool for shape in shapes}}


def owed_now(snapshot: Snapshot) -> dict[int, QueuedJob]:
    """Those for whom others were stopped, and who have room once these have left; oldest first.

    They come before everybody, whatever the rank: what was given up for one goes to nobody else.
    Where the machines went elsewhere all the same, there is nothing to come first for.
    """
    owed = sorted((job for job in snapshot.queued if job.is_owed), key=lambda job: job.job_id)
    left = without_leaving(snapshot.limits, snapshot.running) if owed else {}
    found = {}
    for job in owed:
        limits = {key: left[key] for key in job.shape.limits}
        if not any(limit.lacks(job.shape.demand) for limit in limits.values()):
            found[job.job_id] = job
            for key, limit in limits.items():
                left[key] = limit.copy()
                left[key].take(job.shape.demand)
    return found
