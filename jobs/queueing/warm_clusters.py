"""Warm clusters as the scheduler sees them: the idle ones, and those that waiting jobs name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from django.db.models import F, QuerySet

from jobs.models import Attempt, Cluster, Project
from jobs.queueing.limits import PoolLimits, RequestedResources, pool_of
from jobs.queueing.machines import UpCluster, machines_of
from jobs.queueing.warm_requests import NamingJob
from jobs.scheduling.blockers import busy_cluster
from jobs.scheduling.limits import Shape
from jobs.scheduling.snapshot import NamedCluster, WarmCluster
from jobs.statuses import ClusterStatus

# Clusters that are on before stopped ones, and of these the last used.
BEST_FIRST = (F("stopped_at").desc(nulls_first=True), "-idle_since", "pk")
# In a cluster's `idle_policy`.
OFF_SINCE = "off_since"
READY = (ClusterStatus.UP, ClusterStatus.STOPPED)


def joinable(project: Project | None = None) -> QuerySet[Cluster]:
    """Return the clusters that take further jobs, now or soon; of one project or of all."""
    clusters = Cluster.objects.existing().filter(is_reusable=True, release_requested_at=None)
    return clusters if project is None else clusters.filter(project=project)


def no_such_cluster(name: str) -> str:
    """Return the message for a job whose cluster was terminated, or is too small for it."""
    return f"The project keeps no cluster {name} any more."


def warm_cluster(cluster: UpCluster, shape: Shape, *, is_ending: bool = False) -> WarmCluster:
    """Return an idle cluster as a plan sees it."""
    is_on = cluster.status != ClusterStatus.STOPPED
    requested, fingerprint = cluster.requested, cluster.fingerprint
    return WarmCluster(cluster.name, requested.project_id, fingerprint, shape, is_on, is_ending)


def in_order(idle: Iterable[UpCluster]) -> list[UpCluster]:
    """Return idle clusters in the order in which jobs take them; the last one is ended first.

    Those that a user has extended come first, then the last used.
    """
    return sorted(idle, key=lambda row: (bool(row.idle_policy.get("until")), _last_used(row)))[::-1]


def _last_used(row: UpCluster) -> float:
    return row.idle_since.timestamp() if row.idle_since else 0.0


@dataclass(frozen=True, slots=True)
class NamedClusters:
    """The clusters that waiting jobs name, with what keeps each job from its cluster."""

    of_jobs: Mapping[int, NamedCluster]
    _clusters: Mapping[int, Cluster]
    # By project, pool and name: reserved for the jobs that name them.
    _reserved: Collection[tuple[int, str, str]]

    @classmethod
    def load(cls, jobs: Collection[NamingJob], pool_limits: PoolLimits) -> Self:
        """Return those of `jobs`."""
        if not jobs:
            return cls({}, {}, ())
        rows = joinable().filter(name__in={job.cluster for job in jobs})
        there = {(row.project_id, row.name): row for row in rows}
        busy = dict(
            Attempt.objects.open()
            .filter(cluster__in=[row.pk for row in there.values()])
            .values_list("cluster_id", "job_id")
        )
        of_jobs, clusters, reserved = {}, {}, set()
        for job in jobs:
            cluster = there.get((job.project_id, job.cluster))
            pool = pool_of(pool_limits.queues.get(job.queue_name), job.backend_name)
            reserved.add((job.project_id, pool, job.cluster))
            if cluster is None or cluster.num_nodes < job.num_nodes:
                gone = NamedCluster(job.cluster, no_such_cluster(job.cluster), is_gone=True)
                of_jobs[job.job_id] = gone
                continue
            problem = _problem(cluster, pool, busy.get(cluster.pk), pool_limits)
            of_jobs[job.job_id] = NamedCluster(job.cluster, problem)
            clusters[job.job_id] = cluster
        return cls(of_jobs, clusters, reserved)

    def has(self, project_id: int, pool: str, name: str) -> bool:
        """Whether a waiting job of the project and the pool names that cluster."""
        return (project_id, pool, name) in self._reserved

    def shape_for(
        self, job_id: int, requested: RequestedResources, pool_limits: PoolLimits
    ) -> Shape:
        """Return the limits that `job_id`, which names a cluster, takes of for `requested`.

        It has the whole cluster. Machines that are on are its already: no limit of machines counts
        them again.
        """
        cluster = self._clusters.get(job_id)
        if cluster is None:
            return pool_limits.shape_of(requested)
        whole = pool_limits.shape_of(requested.with_machines_of(cluster))
        if cluster.usd_per_hour is not None and pool_limits.counts_money(whole):
            whole = whole.priced(float(cluster.usd_per_hour))
        if cluster.status == ClusterStatus.STOPPED:
            return whole
        quotas = (key for key in whole.limits if not pool_limits.limits[key].kind.is_machines)
        return replace(whole, limits=tuple(quotas))


def stopped_clusters(pool_limits: PoolLimits, named: NamedClusters) -> list[WarmCluster]:
    """Return the stopped warm clusters that no waiting job names, the last used first."""
    stopped = joinable().filter(status=ClusterStatus.STOPPED).exclude(fingerprint="")
    rows = sorted(machines_of(stopped, with_prices=False), key=_last_used, reverse=True)
    found = (warm_cluster(row, pool_limits.shape_of(row.requested)) for row in rows)
    return [each for each in found if not named.has(each.project_id, each.shape.pool, each.name)]


def _problem(cluster: Cluster, pool: str, busy_with: int | None, pool_limits: PoolLimits) -> str:
    """Return why a job that names the cluster has to wait; "" if it need not."""
    own = pool_of(pool_limits.queues.get(cluster.queue_name), cluster.backend_name)
    if own != pool:
        return (
            f"Cluster {cluster.name} is one of {_pool_words(own)}, and the job's queue has "
            f"machines of {_pool_words(pool)}."
        )
    if busy_with is not None:
        return busy_cluster(cluster.name, busy_with)
    if cluster.status not in READY or cluster.idle_since is None:
        return f"Waits for cluster {cluster.name}, which is being started or stopped."
    return ""


def _pool_words(pool: str) -> str:
    kind, _, name = pool.partition(":")
    return f"pool {name}" if kind == "pool" else "no pool"
