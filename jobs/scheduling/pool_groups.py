"""Groups of pools that share machines: their jobs are in one queue, apart from other groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from jobs.scheduling.limits import Shape
from jobs.scheduling.preemption import without_leaving
from jobs.scheduling.snapshot import QueuedJob, Snapshot


def pool_groups(snapshot: Snapshot) -> list[tuple[frozenset[str], list[QueuedJob]]]:
    """Group the pools that share machines, with their queued jobs; in the order of their names.

    An unlimited resource is not shared: no pool has less of it for what others take.
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
    """Map each pool to a name that is the same for all pools that share machines."""
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


def claimants(snapshot: Snapshot) -> dict[int, QueuedJob]:
    """Find the jobs for which others were stopped, and that fit once these have left; oldest first.

    They come before all others, whatever the rank: preempted machines go to no other job.
    If the machines went elsewhere all the same, the job loses that precedence.
    """
    claiming = sorted((job for job in snapshot.queued if job.has_claim), key=lambda job: job.job_id)
    left = without_leaving(snapshot.limits, snapshot.running) if claiming else {}
    found = {}
    for job in claiming:
        limits = {key: left[key] for key in job.shape.limits}
        if not any(limit.lacks(job.shape.demand) for limit in limits.values()):
            found[job.job_id] = job
            for key, limit in limits.items():
                left[key] = limit.copy()
                left[key].take(job.shape.demand)
    return found
