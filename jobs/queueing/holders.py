"""Holders of machines, and until when: clusters that are up, and jobs between two attempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import QuerySet

from jobs.models import Cluster
from jobs.queueing.limits import PoolLimits, RequestedResources
from jobs.queueing.machines import LastJob, UpCluster, last_on, machines_of
from jobs.queueing.warm_clusters import OFF_SINCE, NamedClusters, in_order, warm_cluster
from jobs.scheduling.limits import Shape
from jobs.scheduling.snapshot import RunningJob, WarmCluster
from jobs.statuses import ClusterStatus, JobStatus

# What a job holds its machines for beside the time of `run`: their start, its set-up, its end.
AROUND_RUN_S = 600.0


@dataclass(slots=True)
class ActiveJob:
    """A job that has left the queue and not ended.

    Since when it is where it is, when its run began there, until when it holds machines at most.
    """

    job_id: int
    requested: RequestedResources
    since_s: float
    begin_s: float
    ends_s: float | None
    cluster_id: int | None
    status: str
    preemptible: bool
    preempted_by: int | None
    fingerprint: str
    names_cluster: str

    @property
    def is_over(self) -> bool:
        """Whether the last attempt has ended, and the job's status is about to change."""
        return self.cluster_id is None and self.status != JobStatus.RECOVERING


class Holders:
    """A count, at one time, of what jobs hold of all limits, and of the idle clusters.

    `warm` are the idle clusters, which no limit counts, in the order in which jobs take them.
    `stuck` are the pools in which machines fail to be given back for too long. Both are complete
    once all was counted.
    """

    def __init__(self, pool_limits: PoolLimits, now_s: float, named: NamedClusters) -> None:
        self._pool_limits, self._now_s, self._named = pool_limits, now_s, named
        # Idle clusters that recovering jobs will take: by project, pool, and name or fingerprint.
        self._claims: Counter[tuple[int, str, str]] = Counter()
        self.warm: list[WarmCluster] = []
        self.stuck: set[str] = set()

    def count(self, active: Iterable[ActiveJob], there: QuerySet[Cluster]) -> Iterator[RunningJob]:
        """Yield the holders of machines; `there` are the clusters that are on."""
        on_clusters: dict[int, ActiveJob] = {}
        for job in active:
            if job.cluster_id is not None:
                on_clusters[job.cluster_id] = job
            else:
                yield self._between(job)
        with_prices = self._pool_limits.prices.are_counted
        clusters = list(machines_of(there, with_prices=with_prices))
        last = last_on([each.pk for each in clusters if each.pk not in on_clusters])
        idle: list[UpCluster] = []
        for cluster in clusters:
            job_there = on_clusters.pop(cluster.pk, None)
            if job_there is None and cluster.idle_since is not None:
                if self._is_claimed(cluster):
                    continue
                if self._is_free(cluster):
                    idle.append(cluster)
                    continue
            yield self._on(cluster, job_there, last.get(cluster.pk))
        for job in on_clusters.values():
            # Its machines were lost, and it is not over yet.
            self._take_quotas(self._pool_limits.shape_of(job.requested), job.job_id)
        self.warm = [
            warm_cluster(each, self._shape(each), is_ending=self._given_back_s(each) is not None)
            for each in in_order(idle)
        ]

    def _between(self, job: ActiveJob) -> RunningJob:
        """Return a job between two attempts, which will have machines again without waiting."""
        shape = self._pool_limits.shape_of(job.requested)
        if not job.is_over and (key := job.names_cluster or job.fingerprint):
            self._claims[job.requested.project_id, shape.pool, key] += 1
        self._take_machines(shape)
        self._take_quotas(shape, job.job_id)
        return RunningJob(job.job_id, shape, job.ends_s, self._now_s, is_leaving=job.is_over)

    def _on(self, cluster: UpCluster, job: ActiveJob | None, last: LastJob | None) -> RunningJob:
        """Return what is on a cluster, under the number of the job that came there last."""
        shape = self._shape(cluster) if job is None else self._shape_on(cluster, job)
        self._take_machines(shape)
        if job is not None:
            self._take_quotas(shape, job.job_id)
            last = LastJob(job.job_id, job.since_s, job.preempted_by)
        is_stuck = self._is_stuck(cluster)
        if is_stuck:
            self.stuck.add(shape.pool)
        is_leaving = self._is_leaving(cluster, job) and not is_stuck
        requested = cluster.requested if job is None else job.requested
        return RunningJob(
            # No job has a number below 0.
            job_id=last.job_id if last else -cluster.pk,
            shape=shape,
            ends_s=self._free_at(cluster, job, is_leaving=is_leaving),
            began_s=last.began_s if last else 0.0,
            project_id=requested.project_id,
            rank=self._pool_limits.rank_of(requested.queue_name),
            is_preemptible=job is not None and self._may_be_preempted(cluster, job),
            is_leaving=is_leaving,
            stopped_for=(last and last.preempted_by) or 0 if is_leaving else 0,
            counts_in_quotas=job is not None,
        )

    def _shape(self, cluster: UpCluster) -> Shape:
        return self._pool_limits.prices.of_running(
            self._pool_limits.shape_of(cluster.requested), cluster.pk
        )

    def _shape_on(self, cluster: UpCluster, job: ActiveJob) -> Shape:
        """Return all machines of the cluster, and the quotas in which the job counts."""
        requested = job.requested
        if requested.amounts != cluster.requested.amounts:
            requested = requested.with_machines_of(cluster.requested)
        return self._pool_limits.prices.of_running(
            self._pool_limits.shape_of(requested), cluster.pk
        )

    def _may_be_preempted(self, cluster: UpCluster, job: ActiveJob) -> bool:
        """Whether the job may be stopped for another one, which would have its machines then."""
        return (
            job.status != JobStatus.STOPPING
            and not job.names_cluster
            and not self._is_named(cluster)
            and self._pool_limits.may_be_stopped(job.requested, says_so=job.preemptible)
        )

    def _is_free(self, cluster: UpCluster) -> bool:
        """Whether an idle cluster counts as free: now, or since it is about to end."""
        if self._given_back_s(cluster) is not None:
            return not self._is_stuck(cluster)
        return _is_warm(cluster) and not self._is_named(cluster)

    def _is_claimed(self, cluster: UpCluster) -> bool:
        """Whether a recovering job will take the idle cluster, and is counted for it."""
        if not self._claims or not _is_warm(cluster):
            return False
        project_id, pool = (
            cluster.requested.project_id,
            self._pool_limits.shape_of(cluster.requested).pool,
        )
        for key in (cluster.name, cluster.fingerprint):
            if self._claims[project_id, pool, key]:
                self._claims[project_id, pool, key] -= 1
                return True
        return False

    def _is_leaving(self, cluster: UpCluster, job: ActiveJob | None) -> bool:
        """Whether its machines are being given back, or will be free soon."""
        if cluster.release_requested_at is not None or self._given_back_s(cluster) is not None:
            return True
        if job is not None:
            return job.status == JobStatus.STOPPING and not self._is_named(cluster)
        return not cluster.is_reusable

    def _is_stuck(self, cluster: UpCluster) -> bool:
        """Whether giving its machines back has failed for too long to count on it."""
        requested_s = self._given_back_s(cluster)
        return requested_s is not None and self._now_s - requested_s >= AROUND_RUN_S

    def _given_back_s(self, cluster: UpCluster) -> float | None:
        """Return since when its machines are being given back; None: they are not."""
        if cluster.release_requested_at is not None:
            return cluster.release_requested_at.timestamp()
        if cluster.status != ClusterStatus.STOPPING or cluster.idle_since is None:
            return None
        return float(cluster.idle_policy.get(OFF_SINCE, self._now_s))

    def _free_at(
        self, cluster: UpCluster, job: ActiveJob | None, *, is_leaving: bool
    ) -> float | None:
        """Return when a cluster's machines are free at the latest; None: unknown."""
        if is_leaving:
            requested_s = self._given_back_s(cluster)
            return (self._now_s if requested_s is None else requested_s) + AROUND_RUN_S
        # One that a waiting job names is for that one then.
        is_bounded = job is not None and not self._is_stuck(cluster) and not self._is_named(cluster)
        return job.ends_s if is_bounded and job is not None else None

    def _is_named(self, cluster: UpCluster) -> bool:
        if not self._named.of_jobs:
            return False
        pool = self._pool_limits.shape_of(cluster.requested).pool
        return self._named.has(cluster.requested.project_id, pool, cluster.name)

    def _take_machines(self, shape: Shape) -> None:
        for limit in (self._pool_limits.limits[key] for key in shape.limits):
            if limit.kind.is_machines:
                limit.take(shape.demand)

    def _take_quotas(self, shape: Shape, job_id: int) -> None:
        for limit in (self._pool_limits.limits[key] for key in shape.limits):
            if not limit.kind.is_machines:
                limit.take(shape.demand)
            if limit.counts_money and shape.unpriced is not None:
                limit.unpriced = job_id


def _is_warm(cluster: UpCluster) -> bool:
    """Whether an idle cluster takes a job now."""
    is_up = cluster.status == ClusterStatus.UP and cluster.release_requested_at is None
    return is_up and cluster.is_reusable
