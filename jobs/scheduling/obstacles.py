"""What keeps a job from starting, as the limits are: quotas, prices, machines that are too few."""

from __future__ import annotations

import math
from collections.abc import Mapping

from jobs.scheduling.amounts import counted
from jobs.scheduling.causes import (
    Behind,
    Cause,
    GaveWay,
    NeverRoom,
    NoPrice,
    NoRoom,
    OverQuota,
)
from jobs.scheduling.limits import Limit, LimitKind, Shape, binding
from jobs.scheduling.snapshot import QueuedJob


def over_a_quota(shape: Shape, limits: Mapping[str, Limit]) -> Cause | None:
    """What it has to wait for although there are machines."""
    if (unpriced := no_price(shape, limits)) is not None:
        return unpriced
    over = binding(shape, limits, machines=False)
    return next((_over(limit, what, shape) for limit, what in over), None)


def no_price(shape: Shape, limits: Mapping[str, Limit]) -> Cause | None:
    """What keeps it from being counted in a limit of money."""
    if shape.unpriced is not None:
        return NoPrice(shape.unpriced)
    concerned = (limits[key] for key in shape.limits)
    others = (limit.unpriced for limit in concerned if limit.unpriced is not None)
    return next((NoPrice(of=other) for other in others), None)


def never(shape: Shape, limits: Mapping[str, Limit]) -> Cause | str | None:
    """More than there is at all, for which no place is held.

    What a backend has is a fact, and the job is refused. What a pool has is what somebody wrote
    down: the job waits until it is written otherwise.
    """
    for key in shape.limits:
        limit = limits[key]
        what = limit.never_has(shape.demand) if limit.kind.is_machines else None
        if what and limit.kind == LimitKind.BACKEND:
            needed = counted(what, shape.amount(what))
            return f"Needs {needed}, but {limit.name} has {limit.caps[what]:g} in all."
        if what:
            return no_room(limit, what, shape, of=NeverRoom)
    return None


def no_room(
    limit: Limit, what: str, shape: Shape, at_s: float = math.inf, of: type[NoRoom] = NoRoom
) -> NoRoom:
    """What there is too little of, and when there is enough at the latest."""
    return of(
        place=limit.name,
        what=what,
        needed=shape.amount(what),
        free=limit.free(what) or 0.0,
        total=limit.caps[what],
        kept=limit.kept,
        expected_s=None if at_s == math.inf else at_s,
        limit=str(limit.kind),
    )


def of_victim(job: QueuedJob, cause: Cause) -> Cause:
    """What is told to one that was stopped for another: that, and what it waits for now."""
    if job.stopped_for and type(cause) in (NoRoom, Behind):
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
