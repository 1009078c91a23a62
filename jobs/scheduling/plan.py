"""Which jobs start now: priority first, then first come, first served, gangs whole.

A job that does not fit holds back everything behind it on the same backend, so that a big job is
never starved by small ones.
"""

from __future__ import annotations

from jobs.scheduling.snapshot import (
    Capacity,
    Decision,
    QueuedJob,
    Refuse,
    Snapshot,
    Start,
    Wait,
)

_UNLIMITED = Capacity(total=None)


def plan(snapshot: Snapshot) -> list[Decision]:
    """One decision for each queued job, in the order in which they would start."""
    ordered = sorted(snapshot.queued, key=lambda job: (-job.priority, job.job_id))
    free = {name: capacity.free for name, capacity in snapshot.capacity.items()}
    ahead: dict[str, QueuedJob] = {}
    decisions: list[Decision] = []
    for job in ordered:
        decision = _decide(job, snapshot, free, ahead)
        if isinstance(decision, Wait):
            ahead.setdefault(job.backend_name, job)
        decisions.append(decision)
    return decisions


def _decide(
    job: QueuedJob,
    snapshot: Snapshot,
    free: dict[str, int | None],
    ahead: dict[str, QueuedJob],
) -> Decision:
    """Start the job and take its nodes out of `free`, or say why it waits."""
    capacity = snapshot.capacity.get(job.backend_name, _UNLIMITED)
    if capacity.problem:
        return Wait(job.job_id, capacity.problem)
    total = capacity.total
    if total is not None and job.num_nodes > total:
        return Refuse(
            job.job_id,
            f"Needs {_nodes(job.num_nodes)}, but {job.backend_name} has {total} in all.",
        )
    first = ahead.get(job.backend_name)
    if first is not None:
        return Wait(job.job_id, f"Waits behind job {first.job_id}, which needs more room.")
    room = free.get(job.backend_name)
    if room is None:
        return Start(job.job_id)
    if job.num_nodes > room:
        return Wait(
            job.job_id,
            f"Needs {_nodes(job.num_nodes)}; {room} of {total} are free on {job.backend_name}.",
        )
    free[job.backend_name] = room - job.num_nodes
    return Start(job.job_id)


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
