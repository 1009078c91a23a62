"""Which jobs start now: priority first, then first come, first served, gangs whole.

A job that does not fit holds back everything behind it on the same backend, so that a big job is
never starved by small ones. Onto a cluster that was kept and is on a job goes at once: its nodes
are taken already.
"""

from __future__ import annotations

from dataclasses import replace

from jobs.scheduling.kept import Guest, KeptCluster, Wish, fits, why_not
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
    kept = [replace(cluster, guests=list(cluster.guests)) for cluster in snapshot.kept]
    ahead: dict[str, QueuedJob] = {}
    decisions: list[Decision] = []
    for job in ordered:
        decision = _onto_kept(job, snapshot, free, kept)
        if decision is None:
            decision = _decide(job, snapshot, free, ahead)
            if isinstance(decision, Wait):
                ahead.setdefault(job.backend_name, job)
        decisions.append(decision)
    return decisions


def _onto_kept(
    job: QueuedJob,
    snapshot: Snapshot,
    free: dict[str, int | None],
    kept: list[KeptCluster],
) -> Decision | None:
    """What becomes of a job that goes onto a kept cluster; None: it takes a new one."""
    wish = job.wish
    if wish is None:
        return None
    if problem := snapshot.capacity.get(job.backend_name, _UNLIMITED).problem:
        return Wait(job.job_id, problem)
    if wish.cluster:
        return _onto_named(job, wish, free, kept)
    for cluster in kept:
        if fits(wish, cluster) and _switched_on(cluster, free):
            _let_in(job, wish, cluster)
            return Start(job.job_id)
    return None


def _onto_named(
    job: QueuedJob, wish: Wish, free: dict[str, int | None], kept: list[KeptCluster]
) -> Decision:
    wanted = (wish.project_id, wish.cluster)
    cluster = next((each for each in kept if (each.project_id, each.name) == wanted), None)
    if cluster is None or cluster.num_nodes < job.num_nodes:
        return Refuse(job.job_id, f"The project keeps no cluster {wish.cluster} any more.")
    if why := why_not(wish, cluster):
        return Wait(job.job_id, why)
    if not _switched_on(cluster, free):
        return Wait(job.job_id, f"Cluster {cluster.name} is switched off; there is no room for it.")
    _let_in(job, wish, cluster)
    return Start(job.job_id)


def _switched_on(cluster: KeptCluster, free: dict[str, int | None]) -> bool:
    """Whether its nodes are on, or there is room for them, which is then taken."""
    room = free.get(cluster.backend_name)
    if room is not None:
        if cluster.nodes_to_switch_on > room:
            return False
        free[cluster.backend_name] = room - cluster.nodes_to_switch_on
    return True


def _let_in(job: QueuedJob, wish: Wish, cluster: KeptCluster) -> None:
    cluster.is_on = True
    cluster.guests.append(Guest(job.job_id, wish.port, wish.wants_gpus))


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
        kept = f" {_nodes(capacity.kept)} kept for a next job." if capacity.kept else ""
        return Wait(
            job.job_id,
            f"Needs {_nodes(job.num_nodes)}; {room} of {total} are free on "
            f"{job.backend_name}.{kept}",
        )
    free[job.backend_name] = room - job.num_nodes
    return Start(job.job_id)


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
