"""The explanation of a job's wait, computed now: position, blocking limit, holders, start."""

from __future__ import annotations

from dataclasses import fields

from jobs.models import Job
from jobs.permissions import Actor
from jobs.queueing.current_pass import planned_now
from jobs.readers.planned_job import PlannedJob, forecast_of
from jobs.statuses import FINAL_STATUSES, JobStatus, WaitReason
from monarch_client.wire.queue import Forecast, Waiting


def explain_wait(actor: Actor, job: Job) -> Waiting:
    """Explain why `job`, which `actor` sees, waits; report it if the job does not wait."""
    forecast = _forecast(actor, job)
    return Waiting(
        **{each.name: getattr(forecast, each.name) for each in fields(forecast)},
        job_id=job.pk,
        status=str(job.status),
        since=job.created_at,
        next_try_at=job.next_try_at,
    )


def _forecast(actor: Actor, job: Job) -> Forecast:
    if job.status != JobStatus.QUEUED:
        has_ended = job.status in FINAL_STATUSES
        said = _ended(job) if has_ended else "It is not queued: it has started."
        return forecast_of("not_waiting", "", said)
    if job.held:
        return forecast_of("held", WaitReason.HELD, _held(job))
    plan = planned_now()
    if job.pk not in {each.job_id for each in plan[0].queued}:
        # It may not even be planned yet: it says itself what it waits for.
        code = job.wait_reason.lower() or "queued"
        return forecast_of(code, job.wait_reason, job.message or "It is queued.")
    return PlannedJob(actor, job.pk, plan).forecast()


def _ended(job: Job) -> str:
    """Return how it ended, and why, for a reader who comes too late."""
    why = f" ({job.stop_reason})" if job.stop_reason else ""
    said = f": {job.message}" if job.message else "."
    return f"It ended {job.status}{why}{said}"


def _held(job: Job) -> str:
    """Return why it is held, which may be another job's end, and how to release it."""
    remedy = f"It is held until `mportal release {job.pk}`, or its button, releases it."
    return f"{job.message} {remedy}".lstrip()
