"""The moves of a job between statuses. No other module writes Job.status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models.functions import Coalesce

from jobs.background.hints import wake_on_commit
from jobs.errors import IllegalMoveError, StaleJobError
from jobs.ground import clock
from jobs.live.channel import (
    publish_many_on_commit,
    publish_on_commit,
    publish_queue_on_commit,
)
from jobs.models import Attempt, Job, JobDependency, JobEvent
from jobs.statuses import EventKind, JobStatus, StopReason

MOVES: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.QUEUED: frozenset({JobStatus.PROVISIONING, JobStatus.CANCELLED, JobStatus.FAILED}),
    JobStatus.PROVISIONING: frozenset(
        {
            JobStatus.SETTING_UP,
            JobStatus.QUEUED,
            JobStatus.RECOVERING,
            JobStatus.STOPPING,
            JobStatus.FAILED,
        }
    ),
    JobStatus.SETTING_UP: frozenset(
        {JobStatus.RUNNING, JobStatus.RECOVERING, JobStatus.STOPPING, JobStatus.FAILED}
    ),
    JobStatus.RUNNING: frozenset(
        {JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.RECOVERING, JobStatus.STOPPING}
    ),
    JobStatus.RECOVERING: frozenset({JobStatus.PROVISIONING, JobStatus.STOPPING, JobStatus.FAILED}),
    # SUCCEEDED: the job was being preempted, and its program ended first.
    JobStatus.STOPPING: frozenset(
        {JobStatus.CANCELLED, JobStatus.FAILED, JobStatus.SUCCEEDED, JobStatus.QUEUED}
    ),
}

# Columns to clear when a job starts: reports of its wait or of the previous attempt are void.
_NO_REPORTS: dict[str, Any] = {
    "wait_reason": "",
    "stop_reason": "",
    "message": "",
    "hint": "",
    "next_try_at": None,
    "preempted_by": None,
}


def can_move(old: JobStatus, new: JobStatus) -> bool:
    """Whether the table has the edge `old` -> `new`."""
    return new in MOVES.get(old, frozenset())


def move(
    job: Job,
    to: JobStatus,
    *,
    reason: StopReason | None = None,
    message: str = "",
    attempt: Attempt | None = None,
    **fields: Any,
) -> None:
    """Move `job` to status `to` and record it, or raise and change nothing.

    `fields` are other columns of the job that change with the move. Moments are kept here:
    `started_at` is the first PROVISIONING, `ended_at` the final status.

    IllegalMoveError: the table has no such edge. StaleJobError: someone moved the job first, or
    held or released it; a held job is never started.
    """
    old = JobStatus(job.status)
    if not can_move(old, to):
        raise IllegalMoveError(f"A job cannot go from {old} to {to}.", job=job.pk)
    changes: dict[str, Any] = {"status": to, **_moments(job, to), **fields}
    if reason is not None:
        changes["stop_reason"] = reason
    if message:
        changes["message"] = message
    # The filter is the lock: of two workers holding the same row, one wins.
    held = job.held and to != JobStatus.PROVISIONING
    row = Job.objects.filter(pk=job.pk, status=old, held=held)
    if attempt is not None:
        # The status may be the same again by now, with another attempt behind it.
        row = row.without_attempt_after(attempt.number)
    # Within a transaction of the caller's no savepoint is needed: nothing is written before it is
    # known which worker wins.
    with transaction.atomic(savepoint=False):
        is_moved = bool(row.update(**changes))
        if is_moved:
            _record(job, to, reason=reason, message=message, attempt=attempt)
    if not is_moved:
        raise StaleJobError(job=job.pk)
    for name, value in changes.items():
        setattr(job, name, value)


def start_together(attempts: Sequence[Attempt]) -> None:
    """Move the queued jobs of these new attempts to PROVISIONING, all of them or none.

    Does what `move` does for each, in a few statements for all; the objects are not updated. Call
    it in a transaction.
    StaleJobError: someone moved or held one of them.
    """
    to, jobs = JobStatus.PROVISIONING, [attempt.job for attempt in attempts]
    changes = {"status": to, **_NO_REPORTS, "has_claim": False}
    rows = Job.objects.filter(pk__in=[job.pk for job in jobs], status=JobStatus.QUEUED, held=False)
    first_started_at = Coalesce("started_at", clock.now())
    if rows.update(**changes, started_at=first_started_at) != len(jobs):
        raise StaleJobError("One of several jobs was moved meanwhile.")
    events = (JobEvent(**_event(each.job, to, attempt=each)) for each in attempts)
    JobEvent.objects.bulk_create(events)
    _publish_together(jobs)


def end_together(jobs: Sequence[Job], *, reason: StopReason, message: str) -> None:
    """End `jobs` early: those that are queued become CANCELLED, the others STOPPING.

    Does what `move` does for each job, in a few statements; does not update the objects. Call it in
    the transaction that has locked them.
    IllegalMoveError: one of them has ended, or is being stopped.
    """
    queued = [job for job in jobs if job.status == JobStatus.QUEUED]
    started = [job for job in jobs if job.status != JobStatus.QUEUED]
    for to, some in ((JobStatus.CANCELLED, queued), (JobStatus.STOPPING, started)):
        for job in some:
            if not can_move(old := JobStatus(job.status), to):
                raise IllegalMoveError(f"A job cannot go from {old} to {to}.", job=job.pk)
        if some:
            _move_together(some, to, reason, message)


def _move_together(jobs: Sequence[Job], to: JobStatus, reason: StopReason, message: str) -> None:
    changes = {"stop_reason": reason, "message": message, "hint": ""}
    rows = Job.objects.filter(pk__in=[job.pk for job in jobs])
    rows.update(status=to, **_moments(jobs[0], to), **changes)
    events = (
        JobEvent(**_event(job, to, attempt=None, reason=reason, message=message)) for job in jobs
    )
    JobEvent.objects.bulk_create(events)
    if to.is_final:
        _notify_dependants(jobs, to)
        _wake_children(jobs)
    _publish_together(jobs)


def _record(
    job: Job,
    to: JobStatus,
    *,
    reason: StopReason | None,
    message: str,
    attempt: Attempt | None,
) -> None:
    """Record the move in the job's history, and notify the jobs that depend on it."""
    JobEvent.objects.create(**_event(job, to, reason=reason, message=message, attempt=attempt))
    if to.is_final:
        _notify_dependants([job], to)
        _wake_children([job])
    _publish(job)


def _event(
    job: Job,
    to: JobStatus,
    *,
    attempt: Attempt | None,
    reason: StopReason | None = None,
    message: str = "",
) -> dict[str, Any]:
    """Return the columns of the event that records a move."""
    return {
        "job": job,
        "attempt": attempt,
        "kind": EventKind.STATUS,
        "old_status": job.status,
        "new_status": to,
        "reason": reason or "",
        "message": message,
    }


def _publish(job: Job) -> None:
    publish_on_commit(job)
    if job.parent_id is not None:
        # The parent's page shows the statuses of its child jobs.
        publish_many_on_commit([(job.parent_id, job.project_id)])


def _publish_together(jobs: Sequence[Job]) -> None:
    projects = {job.pk: job.project_id for job in jobs}
    projects |= {job.parent_id: job.project_id for job in jobs if job.parent_id is not None}
    publish_many_on_commit(projects.items())
    publish_queue_on_commit()


def _notify_dependants(jobs: Sequence[Job], ended_as: JobStatus) -> None:
    """Record the end of `jobs` for their dependants, and wake those after the commit."""
    if JobDependency.objects.filter(needs__in=jobs, ended_as="").update(ended_as=ended_as):
        wake_on_commit("dependencies")


def _wake_children(jobs: Sequence[Job]) -> None:
    """Wake the reconciler that ends the children of `jobs`; else it acts on the next tick."""
    if Job.objects.unfinished().filter(parent__in=jobs, detached=False).exists():
        wake_on_commit("children")


def _moments(job: Job, to: JobStatus) -> dict[str, Any]:
    """Return the columns that change with every move to this status."""
    now = clock.now()
    if to.is_final:
        return {"ended_at": now, "wait_reason": "", "held": False}
    if to == JobStatus.STOPPING:
        return {"stopping_at": now}
    if to == JobStatus.PROVISIONING:
        return {**_NO_REPORTS, "started_at": job.started_at or now}
    return {}
