"""Find the queued jobs that may start, by the rows of jobs, arrays and dependencies."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Case, Exists, F, OuterRef, Q, When, Window
from django.db.models.functions import RowNumber

from jobs.models.job import Job, JobQuerySet
from jobs.models.job_dependency import JobDependency
from jobs.statuses import ACTIVE_STATUSES, JobStatus


def startable_jobs(now: datetime, among: JobQuerySet | None = None) -> JobQuerySet:
    """Return queued jobs that are not held and wait for no time, job or array limit.

    `among`: all jobs by default.
    """
    unmet = JobDependency.objects.unmet().filter(job=OuterRef("pk"))
    is_time = Q(next_try_at=None) | Q(next_try_at__lte=now)
    ready = is_time & Q(~Exists(unmet), status=JobStatus.QUEUED, held=False)
    # Of each array that has a limit: jobs on machines first, then those that may follow.
    limited = Job.objects.filter(ready | Q(status__in=ACTIVE_STATUSES))
    row_number = Window(
        RowNumber(),
        partition_by=F("array_id"),
        order_by=[
            Case(When(status=JobStatus.QUEUED, then=1), default=0),
            F("priority").desc(),
            F("pk").asc(),
        ],
    )
    beyond = (
        limited.filter(array__max_parallel__isnull=False)
        .annotate(place=row_number)
        .filter(place__gt=F("array__max_parallel"))
    )
    jobs = Job.objects.all() if among is None else among
    return jobs.filter(ready).exclude(pk__in=beyond.values("pk"))
