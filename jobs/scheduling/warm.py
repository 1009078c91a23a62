"""Warm clusters for the jobs that a plan starts.

A plan counts idle warm clusters as free. Only then each job that it starts is bound to a matching
one of its project, or launches a cluster of its own. Where idle clusters have the machines for
that, the plan ends them (`Evict`), and the job waits until those machines are free: so no limit is
ever exceeded by what is really up, and no job passes another because its project keeps a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobs.scheduling.causes import ClusterEnding
from jobs.scheduling.limits import Limit, Shape
from jobs.scheduling.snapshot import Decision, Evict, QueuedJob, Snapshot, Start, Wait, WarmCluster


def bind(decisions: Sequence[Decision], snapshot: Snapshot) -> list[Decision]:
    """Return the decisions with each start on a warm cluster or on machines that are free now."""
    if not snapshot.warm:
        return list(decisions)
    jobs = {job.job_id: job for job in snapshot.queued}
    taken, machines = _matches(decisions, jobs, snapshot), _Machines(snapshot)
    machines.keep(taken.values())
    found: list[Decision] = []
    for each in decisions:
        cluster = taken.get(each.job_id)
        if not isinstance(each, Start):
            found.append(each)
        elif cluster is None:
            found.append(machines.start(jobs[each.job_id], each.onto))
        elif cluster.is_on:
            found.append(Start(each.job_id, cluster.name))
        else:
            found.append(machines.start(jobs[each.job_id], cluster.name))
    return found


def _matches(
    decisions: Sequence[Decision], jobs: dict[int, QueuedJob], snapshot: Snapshot
) -> dict[int, WarmCluster]:
    """Return the warm clusters that starting jobs take, by job; each is taken once."""
    free = [each for each in snapshot.warm if not each.is_ending]
    found: dict[int, WarmCluster] = {}
    for each in decisions:
        fingerprint = snapshot.fingerprints.get(each.job_id)
        if not isinstance(each, Start) or not fingerprint:
            continue
        job = jobs[each.job_id]
        wanted = (job.project_id, job.shape.pool, fingerprint)
        fitting = (at for at, one in enumerate(free) if _key(one) == wanted)
        if (first := next(fitting, None)) is not None:
            found[each.job_id] = free.pop(first)
    return found


def _key(cluster: WarmCluster) -> tuple[int, str, str]:
    return cluster.project_id, cluster.shape.pool, cluster.fingerprint


class _Machines:
    """The machines that are really up: those of jobs, of idle clusters, and of ending ones."""

    def __init__(self, snapshot: Snapshot) -> None:
        limits = snapshot.limits.items()
        self._now = {key: limit.copy() for key, limit in limits if limit.kind.is_machines}
        # As `_now`, once all that is ending has ended.
        self._soon = {key: limit.copy() for key, limit in self._now.items()}
        self._idle = [each for each in snapshot.warm if each.is_on and not each.is_ending]
        self._stuck = snapshot.stuck
        for each in snapshot.warm:
            if each.is_on:
                _take(self._now, each.shape)
        for each in self._idle:
            _take(self._soon, each.shape)

    def keep(self, clusters: Iterable[WarmCluster]) -> None:
        """Do not end these: jobs that start take them."""
        kept = {each.name for each in clusters}
        self._idle = [each for each in self._idle if each.name not in kept]

    def start(self, job: QueuedJob, onto: str) -> Decision:
        """Return the start of a job that needs machines, or what it waits for."""
        is_free = not _lacks(self._now, job.shape)
        ended = [] if is_free else self._make_room(job.shape)
        _take(self._now, job.shape)
        _take(self._soon, job.shape)
        if is_free:
            return Start(job.job_id, onto)
        cause = ClusterEnding(job.shape.num_nodes)
        if not ended:
            return Wait(job.job_id, cause)
        return Evict(job.job_id, tuple(each.name for each in ended), cause)

    def _make_room(self, shape: Shape) -> list[WarmCluster]:
        """End idle clusters, the last one first, until there are machines; none in vain.

        None where machines fail to be given back: it would be one after the other for nothing.
        """
        chosen: list[WarmCluster] = []
        if shape.pool in self._stuck:
            return chosen
        for each in reversed(self._idle):
            if not (scarce := _lacks(self._soon, shape)):
                break
            if scarce & set(each.shape.limits):
                chosen.append(each)
                _take(self._soon, each.shape, -1)
        for each in list(chosen):
            _take(self._soon, each.shape)
            if _lacks(self._soon, shape):
                _take(self._soon, each.shape, -1)
            else:
                chosen.remove(each)
        self._idle = [each for each in self._idle if each not in chosen]
        return chosen


def _lacks(limits: dict[str, Limit], shape: Shape) -> set[str]:
    """Return the keys of the machines of which there are too few for a start."""
    there = (key for key in shape.limits if key in limits)
    return {key for key in there if limits[key].lacks(shape.demand)}


def _take(limits: dict[str, Limit], shape: Shape, sign: int = 1) -> None:
    demand = tuple((what, sign * amount) for what, amount in shape.demand)
    for key in shape.limits:
        if key in limits:
            limits[key].take(demand)
