"""End jobs without a driver to which no program has been attached for `portal.idle.minutes`."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Max, QuerySet

from jobs.background.hints import wake_on_commit
from jobs.ground import clock
from jobs.lifecycle import move
from jobs.limits import idle_limit
from jobs.models import Attempt, GatewaySession, Job
from jobs.policies.limits import Limit, shown_minutes_s
from jobs.statuses import JobStatus, StopReason


def unattended(attempts: QuerySet[Attempt]) -> set[int]:
    """Return the jobs whose workers have waited for a program for too long."""
    waiting = attempts.filter(
        job__request_options__waits_for_laptops=True,
        job__status=JobStatus.RUNNING,
        run_started_at__isnull=False,
    )
    return {
        attempt.job_id
        for attempt in waiting.select_related("job__project")
        if _idle_for(attempt) >= _allowed(attempt.job)
    }


def watch_programs(job: Job, attempt: Attempt) -> None:
    """Stop a job without a driver once it has waited for its idle minutes.

    A program that is attached or away, and a child job, is use of it. StaleJobError when the job
    was moved meanwhile.
    """
    if not job.request.waits_for_laptops or job.status != JobStatus.RUNNING:
        return
    idle = _idle_for(attempt)
    if idle < _allowed(job):
        return
    message = f"No program was attached for {shown_minutes_s(idle.total_seconds())}."
    if (limit := _limit_that_counts(job)) is not None:
        message += f" {limit.value} min are the limit of {limit.set_by}."
    move(
        job,
        JobStatus.STOPPING,
        reason=StopReason.IDLE,
        message=message,
        attempt=attempt,
        hint="Start new workers with `mportal dev`. If they are to wait longer, raise "
        "portal.idle.minutes.",
    )
    wake_on_commit("stopping", job.pk)


def _idle_for(attempt: Attempt) -> timedelta:
    """Return how long nothing has used the workers of the attempt."""
    sessions = GatewaySession.objects.filter(attempt=attempt)
    children = Job.objects.unfinished().filter(parent=attempt.job_id)
    is_used = sessions.current().exists() or children.exists()
    if attempt.run_started_at is None or is_used:
        return timedelta(0)
    last_end: datetime | None = sessions.aggregate(last=Max("ended_at"))["last"]
    return clock.now() - max(filter(None, (attempt.run_started_at, last_end)))


def _allowed(job: Job) -> timedelta:
    limit = _limit_that_counts(job)
    return timedelta(minutes=job.request.idle.minutes if limit is None else limit.value)


def _limit_that_counts(job: Job) -> Limit | None:
    """Return the limit of an administrator, if the job wants to wait for longer."""
    limit = idle_limit(job.project)
    return limit if limit is not None and limit.value < job.request.idle.minutes else None
