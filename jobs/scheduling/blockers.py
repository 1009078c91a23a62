"""The rules that `rules` lists: each checks one thing that may keep a job from starting."""

from __future__ import annotations

import math
from dataclasses import replace

from jobs.scheduling.amounts import counted
from jobs.scheduling.causes import (
    Behind,
    Cause,
    NeverRoom,
    NoPrice,
    NoRoom,
    OverQuota,
    Preempted,
    ReportedBlocker,
)
from jobs.scheduling.limits import Limit, LimitKind, Shape, binding, scarce_for
from jobs.scheduling.room import Room
from jobs.scheduling.snapshot import QueuedJob

# Why a job waits; a text: why it can never start, and fails.
Blocker = Cause | str


def project_is_blocked(job: QueuedJob, room: Room) -> ReportedBlocker | None:
    """Check that no job of the project is kept from starting, as where a budget is spent."""
    blocked = room.snapshot.barred.get(job.project_id)
    return None if blocked is None else ReportedBlocker(blocked[1], blocked[0])


def named_cluster_is_gone(job: QueuedJob, room: Room) -> str | None:
    """Check that the cluster that the job names exists, and has nodes enough."""
    return job.cluster.problem if job.cluster is not None and job.cluster.is_gone else None


def named_cluster_is_busy(job: QueuedJob, room: Room) -> ReportedBlocker | None:
    """Check that the cluster that the job names is ready, and that no other job runs on it."""
    if job.cluster is None:
        return None
    if job.cluster.problem:
        return ReportedBlocker(job.cluster.problem)
    other = room.taken.get(job.cluster.name)
    return None if other is None else ReportedBlocker(busy_cluster(job.cluster.name, other))


def backend_is_unavailable(job: QueuedJob, room: Room) -> ReportedBlocker | None:
    """Check that the backend reports no problem."""
    problem = room.snapshot.problems.get(job.shape.backend_name)
    return ReportedBlocker(problem) if problem else None


def price_is_unknown(job: QueuedJob, room: Room) -> NoPrice | None:
    """Check that each limit of money of the job knows all the prices that count in it."""
    if job.shape.unpriced is not None:
        return NoPrice(job.shape.unpriced)
    concerned = (room.limits[key] for key in job.shape.limits)
    others = (limit.unpriced for limit in concerned if limit.unpriced is not None)
    return next((NoPrice(of=other) for other in others), None)


def quota_is_used_up(job: QueuedJob, room: Room) -> OverQuota | None:
    """Check that the job fits all its quotas."""
    over = binding(job.shape, room.limits, machines=False)
    return next((_over(limit, what, job.shape) for limit, what in over), None)


def total_is_too_small(job: QueuedJob, room: Room) -> Blocker | None:
    """Check that its pool and its backend have as much as it requests, whatever runs now.

    What a backend has is a fact, and the job fails. What a pool has was set by an administrator:
    the job waits until that changes, without a reservation.
    """
    for key in job.shape.limits:
        limit = room.limits[key]
        what = limit.never_has(job.shape.demand) if limit.kind.is_machines else None
        if what and limit.kind == LimitKind.BACKEND:
            needed = counted(what, job.shape.amount(what))
            return f"Needs {needed}, but {limit.name} has {limit.caps[what]:g} in all."
        if what:
            return _no_room(limit, what, job.shape, of=NeverRoom)
    return None


def another_is_first(job: QueuedJob, room: Room) -> Behind | None:
    """Check that no earlier job waits for the machines of which it has too few."""
    scarce = scarce_for(job.shape, room.limits)
    return room.reserved.first_in(scarce) if scarce else None


def machines_are_in_use(job: QueuedJob, room: Room) -> NoRoom | None:
    """Check that machines enough are free. If not, make a reservation: it is the first to wait."""
    for limit, what in binding(job.shape, room.limits, machines=True):
        made = room.reserved.hold(job, room.running, room.limits)
        cause = _no_room(limit, what, job.shape, made.at_s)
        return replace(cause, ending=room.ending_of(limit, what))
    return None


def start_would_delay_another(job: QueuedJob, room: Room) -> Behind | None:
    """Check that no reservation starts later for it; if so, what it takes of them is taken."""
    return room.reserved.stop(job, job.until_s(room.now_s))


def of_victim(job: QueuedJob, cause: Cause) -> Cause:
    """Return what is shown to a job that was preempted: that, and what it waits for now."""
    if job.stopped_for and type(cause) in (NoRoom, Behind):
        return Preempted(job.stopped_for, cause)
    return cause


def busy_cluster(name: str, job_id: int) -> str:
    """Return the message for a job that waits for the cluster that it names."""
    return f"Waits for cluster {name}, on which job {job_id} runs."


def _no_room(
    limit: Limit, what: str, shape: Shape, at_s: float = math.inf, of: type[NoRoom] = NoRoom
) -> NoRoom:
    return of(
        place=limit.name,
        what=what,
        needed=shape.amount(what),
        free=limit.free(what) or 0.0,
        total=limit.caps[what],
        expected_s=None if at_s == math.inf else at_s,
        limit=str(limit.kind),
    )


def _over(limit: Limit, what: str, shape: Shape) -> OverQuota:
    return OverQuota(
        limit=str(limit.kind),
        name=limit.name,
        what=what,
        needed=shape.amount(what),
        used=limit.used.get(what, 0.0),
        cap=limit.caps[what],
    )
