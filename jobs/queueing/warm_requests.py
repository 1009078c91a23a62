"""Reuse requests: jobs that name a warm cluster, or run on any with matching machines."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from django.db.models import Q, QuerySet

from jobs.models import Cluster, Job
from jobs.models.job import REQUESTS_REUSE
from jobs.queueing.limits import load_queues, pool_of
from jobs.statuses import JobStatus


class NamingJob(NamedTuple):
    """A job that waits, whatever for, and runs on no cluster but the one that it names."""

    job_id: int
    project_id: int
    queue_name: str
    backend_name: str
    num_nodes: int
    cluster: str


def naming_jobs(project_id: int | None = None) -> list[NamingJob]:
    """Return the waiting jobs that name a cluster: of one project, or of all.

    Held jobs are not among them: holding a job would keep machines from others for nothing.
    """
    jobs = _waiting().filter(request_options__has_key="cluster")
    if project_id is not None:
        jobs = jobs.filter(project=project_id)
    columns = ("pk", "project_id", "queue_name", "backend_name", "num_nodes")
    return list(map(NamingJob._make, jobs.values_list(*columns, "request_options__cluster")))


def fingerprints_of_queued(among: Collection[str]) -> dict[int, str]:
    """Return the fingerprints of queued jobs by their numbers, of those that are `among` these."""
    queued = Job.objects.filter(
        REQUESTS_REUSE, status=JobStatus.QUEUED, fingerprint__in=list(among)
    )
    return dict(queued.values_list("pk", "fingerprint"))


def is_named(cluster: Cluster) -> bool:
    """Whether a waiting job names the cluster, and its queue uses machines of the same pool."""
    queues = load_queues()
    pool = pool_of(queues.get(cluster.queue_name), cluster.backend_name)
    naming = (job for job in naming_jobs(cluster.project_id) if job.cluster == cluster.name)
    return any(pool_of(queues.get(job.queue_name), job.backend_name) == pool for job in naming)


def _waiting() -> QuerySet[Job]:
    # The index of queued jobs that take warm clusters has the same condition.
    queued = Q(status=JobStatus.QUEUED) & REQUESTS_REUSE
    return Job.objects.filter(queued | Q(status=JobStatus.RECOVERING), held=False)
