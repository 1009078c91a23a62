"""Warm clusters: those that wait for the next job of their project, as the scheduler sees them."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import F, Prefetch, QuerySet

from jobs.models import Attempt, Cluster, Job, Project, Queue
from jobs.policies.idle import IdlePolicy, stays_s
from jobs.policies.limits import Limit as MostOf
from jobs.queueing.limits import machines_in, pool_of
from jobs.queueing.warm_requests import port_of, wants_gpus
from jobs.scheduling.kept import Guest, KeptCluster
from jobs.statuses import ClusterStatus

# Those that are on before those that were switched off, and of these the last used.
BEST_FIRST = (F("stopped_at").desc(nulls_first=True), "-idle_since", "pk")
# In a cluster's `idle_policy`.
OFF_SINCE = "off_since"
_READY = (ClusterStatus.UP, ClusterStatus.STOPPED)


def joinable(project: Project | None = None) -> QuerySet[Cluster]:
    """Clusters that take further jobs, now or soon; of one project or of all."""
    clusters = Cluster.objects.existing().filter(is_reusable=True, release_requested_at=None)
    return clusters if project is None else clusters.filter(project=project)


def kept_clusters(
    queues: Mapping[str, Queue], most_idle: Mapping[int, MostOf | None]
) -> list[KeptCluster]:
    """All that take jobs, with who is on them; those that are on come first.

    `most_idle`: what administrators allow, by project.
    """
    guests = Prefetch("attempts", Attempt.objects.open().select_related("job"), to_attr="guests")
    rows = joinable().order_by(*BEST_FIRST).prefetch_related(guests)
    found = []
    for row in rows:
        kept, policy = as_kept(row, queues), IdlePolicy.from_dict(row.idle_policy)
        kept.keeps_s = stays_s(policy, most_idle.get(row.project_id))
        found.append(kept)
    return found


def as_kept(cluster: Cluster, queues: Mapping[str, Queue]) -> KeptCluster:
    guests = getattr(cluster, "guests", None)
    if guests is None:
        guests = Attempt.objects.open().filter(cluster=cluster).select_related("job")
    return KeptCluster(
        name=cluster.name,
        project_id=cluster.project_id,
        backend_name=cluster.backend_name,
        num_nodes=cluster.num_nodes,
        fingerprint=cluster.fingerprint,
        is_on=cluster.status != ClusterStatus.STOPPED,
        is_ready=cluster.status in _READY,
        guests=[_guest(attempt.job) for attempt in guests],
        usd_per_hour=None if cluster.usd_per_hour is None else float(cluster.usd_per_hour),
        pool=pool_of(queues.get(cluster.queue_name), cluster.backend_name),
        machines=machines_in(cluster.num_nodes, cluster.gpu_type, cluster.gpu_count),
    )


def _guest(job: Job) -> Guest:
    return Guest(job.pk, port_of(job), wants_gpus(job.spec.get("resources")))
