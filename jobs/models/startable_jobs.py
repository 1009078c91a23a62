"""Find the queued jobs that may start, by the rows of jobs, arrays and dependencies."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import cache
from typing import Any

from django.db.models import BooleanField, Case, Exists, F, OuterRef, Q, When, Window
from django.db.models.expressions import RawSQL
from django.db.models.functions import RowNumber

from jobs.models.job import Job, JobQuerySet
from jobs.models.job_dependency import JobDependency
from jobs.statuses import ACTIVE_STATUSES, JobStatus

# Stands for the present in the statement that is built once.
_NOW = datetime.max.replace(tzinfo=timezone.utc)


def startable_jobs(now: datetime) -> JobQuerySet:
    """Return queued jobs that are not held and wait for no time, job or array limit."""
    sql, params = _beyond_limits()
    values = [now if each == _NOW else each for each in params]
    is_within = RawSQL(f"jobs_job.id NOT IN ({sql})", values, BooleanField())  # noqa: S611 - Django's own SQL
    return Job.objects.filter(_ready(now)).filter(is_within)


def _ready(now: datetime) -> Q:
    unmet = JobDependency.objects.unmet().filter(job=OuterRef("pk"))
    is_time = Q(next_try_at=None) | Q(next_try_at__lte=now)
    return is_time & Q(~Exists(unmet), status=JobStatus.QUEUED, held=False)


@cache
def _beyond_limits() -> tuple[str, tuple[Any, ...]]:
    """Build the statement that finds jobs beyond the limit of their array, with `_NOW` as its time.

    Django takes several milliseconds for that, twice in each scheduling pass.
    """
    # Of each array that has a limit: jobs on machines first, then those that may follow.
    limited = Job.objects.filter(_ready(_NOW) | Q(status__in=ACTIVE_STATUSES))
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
    return beyond.values("pk").query.sql_with_params()
