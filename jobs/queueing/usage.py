"""Effective usage of pools by person and project."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from jobs.models import UseAccount
from jobs.queueing.limits import PoolLimits, RequestedResources
from jobs.scheduling.shares import Account, decayed_use, promised_use
from jobs.scheduling.snapshot import QueuedJob, Share


def used_by_persons(
    running: Iterable[tuple[RequestedResources, float, float | None]],
    pool_limits: PoolLimits,
    now_s: float,
) -> dict[tuple[str, int, int], float]:
    """Return the effective usage in normalized hours by (pool, project, person).

    `running` are jobs with their begin and, if it is known, their end.
    """
    used: dict[tuple[str, int, int], float] = defaultdict(float)
    for row in UseAccount.objects.all():
        account = Account(row.unit_hours, row.at.timestamp())
        left = account.carried_to(now_s, pool_limits.half_life_of(row.pool))
        used[row.pool, row.project_id, row.user_id] += left
    half_lives: dict[str, float] = {}  # looked up once a pool: thousands may run there
    for requested, begin_s, ends_s in running:
        shape = pool_limits.shape_of(requested)
        half_life_s = half_lives.get(shape.pool)
        if half_life_s is None:
            half_life_s = half_lives[shape.pool] = pool_limits.half_life_of(shape.pool)
        ran = decayed_use(shape.units, begin_s, now_s, now_s=now_s, half_life_s=half_life_s)
        promised = promised_use(shape.units, None if ends_s is None else ends_s - now_s)
        used[shape.pool, requested.project_id, requested.user_id] += ran + promised
    return dict(used)


def shares_of(
    waiting: Iterable[QueuedJob],
    persons: Mapping[tuple[str, int, int], float],
    weights: Mapping[int, float],
) -> dict[tuple[str, int], Share]:
    """Return the usage and weight of each project that used a pool or waits for one."""
    used: dict[tuple[str, int], float] = defaultdict(float)
    for (pool, project_id, _), unit_hours in persons.items():
        used[pool, project_id] += unit_hours
    both = {*used, *((job.shape.pool, job.project_id) for job in waiting)}
    return {
        (pool, project_id): Share(used[pool, project_id], weights.get(project_id, 1.0))
        for pool, project_id in both
    }
