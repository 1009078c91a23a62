"""Upper bounds that an administrator sets, for the installation and for each project."""

from __future__ import annotations

from django.conf import settings

from jobs.models import Cluster, Job, Project
from jobs.policies.gpu_idle import GpuRule
from jobs.policies.idle import BACKSTOP_MARGIN_MINUTES, IdlePolicy, backstop_minutes
from jobs.policies.limits import Limit, smaller, walltime_s


def duration_limit(project: Project) -> Limit | None:
    """Return the limit of an attempt's run time in seconds; None without one."""
    return smaller(project.max_duration_s, settings.MPORTAL_MAX_DURATION_S, project.slug)


def idle_limit(project: Project) -> Limit | None:
    """Return the limit of a cluster's idle time in minutes; None without one."""
    return smaller(project.max_idle_minutes, settings.MPORTAL_MAX_IDLE_MINUTES, project.slug)


def walltime_of(job: Job) -> int | None:
    """Return the seconds that an attempt of `job` may run now; None: no limit."""
    return walltime_s(job.duration_s, job.extended_s, duration_limit(job.project))


def gpu_rule_of(job: Job) -> GpuRule | None:
    """Return the rule by which idle GPUs end `job` now; None: they never do."""
    request = job.request
    if request.gpu_below is None:
        return None
    return GpuRule(request.gpu_below, request.idle.minutes, idle_limit(job.project))


def backstop_of(cluster: Cluster) -> int:
    """Return the idle minutes after which the backend itself terminates the cluster.

    A cluster that is not reusable is terminated when its job ends: only the margin applies.
    """
    if not cluster.is_reusable:
        return BACKSTOP_MARGIN_MINUTES
    policy = IdlePolicy.from_dict(cluster.idle_policy)
    return backstop_minutes(policy, idle_limit(cluster.project), cluster.idle_since)
