"""Child jobs: what the program of a job submits, and what its end means for them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction

from jobs.actions.jobs.history import record_note
from jobs.background.hints import wake_on_commit
from jobs.errors import ConflictError, StaleJobError
from jobs.lifecycle import move
from jobs.models import Attempt, Job
from jobs.permissions import Actor
from jobs.statuses import JobStatus, StopReason
from monarch_client.spec import JobSpec

# A job that a user submitted, its children, theirs, and theirs.
MOST_LEVELS = 3

_HINT = "What is to outlive the job that submits it says `portal.detached: true`."


def parent_fields(actor: Actor, spec: JobSpec) -> dict[str, Any]:
    """Return the columns of a new job about its parent, and whether it would outlive a parent."""
    fields: dict[str, Any] = {"detached": spec.portal.detached}
    if actor.driver is None:
        return fields
    parent = actor.driver.job
    number = {"parent_number": parent.pk, "parent_attempt": actor.driver.number}
    return {**fields, **number, "parent_id": parent.pk, "depth": parent.depth + 1}


def would_end_with(actor: Actor) -> frozenset[int]:
    """Return the numbers of the jobs with which a child submitted by the actor now would end.

    A detached child outlives them all.
    """
    job = actor.driver.job if actor.driver is not None else None
    found = set()
    while job is not None:
        found.add(job.pk)
        job = None if job.detached else job.parent
    return frozenset(found)


def refuse_children(driver: Attempt, parent: Job, count: int) -> None:
    """Pass silently if `parent`, locked by the caller, may have `count` more children.

    ConflictError says why it may not.
    """
    is_over = Attempt.objects.filter(pk=driver.pk, ended_at__isnull=False).exists()
    if parent.is_final or parent.status == JobStatus.STOPPING or is_over:
        raise ConflictError(f"Job {parent.pk} is ending: it submits nothing any more.")
    if parent.depth >= MOST_LEVELS:
        raise ConflictError(
            f"Job {parent.pk} is the child of a child already, {parent.depth} levels down: below "
            "that nothing is submitted."
        )
    most: int = settings.MPORTAL_MAX_CHILDREN
    alive = Job.objects.unfinished().filter(parent=parent).count()
    if alive + count > most:
        raise ConflictError(
            f"Job {parent.pk} has {alive} child jobs that have not ended, and may have {most}; "
            f"{count} more are too many. Submit them once others have ended."
        )


def note_on_parent(driver: Attempt, children: list[Job]) -> None:
    """Note on the parent what it submitted, in the transaction of that."""
    first, count = children[0], len(children)
    submitted = (
        f"job {first.pk} ({first.name})" if count == 1 else f"{count} jobs, from {first.pk} on"
    )
    record_note(driver.job, f"Submitted {submitted}.", driver)


def end_with_parent(job_id: int) -> None:
    """End a job whose parent has ended; a second call changes nothing.

    StaleJobError: it has moved meanwhile.
    """
    job = Job.objects.orphaned().select_related("parent").filter(pk=job_id).first()
    if job is None:
        return
    message, hint = _end_of_parent(job)
    if job.status == JobStatus.STOPPING:
        _queue_no_more(job, message, hint)
        return
    waits = job.status == JobStatus.QUEUED
    with transaction.atomic():
        to = JobStatus.CANCELLED if waits else JobStatus.STOPPING
        move(job, to, reason=StopReason.PARENT, message=message, hint=hint)
        # A job that waits no more blocks no other.
        wake_on_commit("queue" if waits else "stopping", None if waits else job.pk)


def _end_of_parent(job: Job) -> tuple[str, str]:
    """Return the message and the hint of a child that ends with its parent."""
    number = job.parent_number
    if job.parent is not None and not job.parent.is_final:
        ended = f"Attempt {job.parent_attempt} of job {number}, which it served, has ended."
        return ended, "The next attempt requests a mesh of its own."
    how = JobStatus(job.parent.status).label.lower() if job.parent else "deleted"
    message = f"Job {number}, which submitted it, has ended ({how})."
    return message, "" if job.request.serves_parent else _HINT


@transaction.atomic
def _queue_no_more(job: Job, message: str, hint: str) -> None:
    """Make sure that a job which is being preempted is not queued again."""
    changes = {"stop_reason": StopReason.PARENT, "message": message, "hint": hint}
    if not Job.objects.orphaned().filter(pk=job.pk).update(**changes, preempted_by=None):
        raise StaleJobError(job=job.pk)
    record_note(job, message)
