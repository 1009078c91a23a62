"""Gives RECOVERING jobs their next attempt, once the last one's machines are gone."""

from __future__ import annotations

from django.db.models import Q
from django.utils import timezone

from jobs.actions.start_attempt import start_attempt
from jobs.errors import StaleJobError
from jobs.models import Cluster, Job
from jobs.reconcilers.exclusive import LockSpace, exclusive
from jobs.statuses import JobStatus
from jobs.wakeups import wake


def due() -> list[int]:
    """Jobs whose waiting time is over."""
    ready = Q(next_try_at=None) | Q(next_try_at__lte=timezone.now())
    jobs = Job.objects.in_status(JobStatus.RECOVERING).filter(ready)
    return list(jobs.values_list("pk", flat=True))


def step(job_id: int) -> None:
    """Start the next attempt, or come back when it is time. Safe to repeat."""
    with exclusive(LockSpace.JOB, job_id) as alone:
        if not alone:
            return
        jobs = Job.objects.in_status(JobStatus.RECOVERING).select_related("project")
        job = jobs.filter(pk=job_id).first()
        if job is None:
            return
        wait_s = _wait_s(job)
        if wait_s > 0:
            wake("recovering", job_id, delay_s=wait_s)
            return
        # Two incarnations at once could write the same checkpoint: the old one goes first.
        if Cluster.objects.existing().filter(attempts__job=job).exists():
            return
        try:
            start_attempt(job)
        except StaleJobError:
            return


def _wait_s(job: Job) -> float:
    if job.next_try_at is None:
        return 0.0
    return (job.next_try_at - timezone.now()).total_seconds()
