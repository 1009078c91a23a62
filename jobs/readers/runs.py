"""Jobs as runs: with their times, their code, and the last values of their program's metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from jobs.ground import clock
from jobs.models import Job, JobCode, ProgramSeries
from jobs.readers.job_table import Rights, job_row, with_attempts
from jobs.statuses import JobStatus
from monarch_client.wire import jobs as wire_jobs
from monarch_client.wire.runs import Run, RunMetric

# Of one run.
MOST_METRICS = 24
_DIGITS_SHOWN = 12


def runs_of(jobs: QuerySet[Job], rights: Mapping[int, Rights]) -> dict[int, Run]:
    """Return each job as a run, by its number; `rights` are those in its project, by project.

    The number of queries does not depend on the number of jobs.
    """
    found = list(with_attempts(jobs).select_related("code"))
    metrics = _metrics_of([job.pk for job in found])
    return {job.pk: _run(job, rights[job.project_id], metrics[job.pk]) for job in found}


def _run(job: Job, rights: Rights, metrics: list[RunMetric]) -> Run:
    row = job_row(job, rights)
    return Run(
        job=row,
        wait_s=_wait_s(row),
        duration_s=_seconds(row.started_at, row.ended_at),
        code=_code_of(job),
        metrics=metrics,
    )


def _wait_s(job: wire_jobs.Job) -> float | None:
    """Return how long a job waited, or waits; None if it ended before it started."""
    if job.started_at is None and job.status != JobStatus.QUEUED:
        return None
    return _seconds(job.created_at, job.started_at)


def _seconds(begin: datetime | None, end: datetime | None) -> float | None:
    return None if begin is None else ((end or clock.now()) - begin).total_seconds()


def _code_of(job: Job) -> str:
    # A job whose code nobody synchronized has none of its own.
    code: JobCode | None = getattr(job, "code", None)
    workdir: Any = code.reference if code else job.spec.get("workdir")
    if isinstance(workdir, dict):
        url, ref = str(workdir.get("url", "")), str(workdir.get("ref") or "")
        return f"{url}@{ref}" if ref else url
    return str(workdir or "").removeprefix("upload:")[:_DIGITS_SHOWN]


def _metrics_of(numbers: Sequence[int]) -> defaultdict[int, list[RunMetric]]:
    """Return the last values of each job's metrics, by name, in one query.

    Of the newest attempt that reported a metric, the lowest rank.
    """
    rows = ProgramSeries.objects.filter(attempt__job__in=numbers)
    rows = rows.order_by("attempt__job", "name", "-attempt__number", "rank")
    columns = ("attempt__job", "name", "rank", "step", "value", "lowest", "highest")
    found: defaultdict[int, list[RunMetric]] = defaultdict(list)
    for job, *values in rows.distinct("attempt__job", "name").values_list(*columns):
        if len(found[job]) < MOST_METRICS:
            name, rank, step, value, lowest, highest = values
            metric = RunMetric(
                name=name, rank=rank, step=step, value=value, lowest=lowest, highest=highest
            )
            found[job].append(metric)
    return found
