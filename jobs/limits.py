"""What an administrator allows at most, in the installation and in each project."""

from __future__ import annotations

from django.conf import settings

from jobs.models import Cluster, Job, Project
from jobs.policies.gpu_idle import GpuRule
from jobs.policies.idle import BACKSTOP_MARGIN_MINUTES, IdlePolicy, backstop_minutes
from jobs.policies.limits import Limit, smaller, walltime_s


def duration_limit(project: Project) -> Limit | None:
    """Seconds that an attempt may run at most."""
    return smaller(project.max_duration_s, settings.MPORTAL_MAX_DURATION_S, project.slug)


def idle_limit(project: Project) -> Limit | None:
    """Minutes that a cluster may wait for a next job at most."""
    return smaller(project.max_idle_minutes, settings.MPORTAL_MAX_IDLE_MINUTES, project.slug)


def walltime_of(job: Job) -> int | None:
    """Seconds that an attempt of `job` may run, as things stand; None: as long as it likes."""
    return walltime_s(job.duration_s, job.extended_s, duration_limit(job.project))


def gpu_rule_of(job: Job) -> GpuRule | None:
    """When the idleness of its GPUs ends `job`, as things stand; None: never."""
    request = job.request
    if request.gpu_below is None:
        return None
    return GpuRule(request.gpu_below, request.idle.minutes, idle_limit(job.project))


def backstop_of(cluster: Cluster) -> int:
    """Minutes without a job after which the backend itself is to end the cluster's machines.

    Those of a cluster that is not kept go when its job ends: the margin alone counts.
    """
    if not cluster.is_reusable:
        return BACKSTOP_MARGIN_MINUTES
    policy = IdlePolicy.from_dict(cluster.idle_policy)
    return backstop_minutes(policy, idle_limit(cluster.project), cluster.idle_since)
