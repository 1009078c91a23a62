"""Holding a queued job back, and letting it go again."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jobs.actions.jobs.history import note_action
from jobs.actions.jobs.present import keep, read_again, refuse_ended
from jobs.admission.dependency_messages import wait_for_dependencies
from jobs.audit.record import record
from jobs.background.hints import wake_on_commit
from jobs.errors import ConflictError
from jobs.models import Job
from jobs.permissions import Actor, require_hold
from jobs.statuses import JobStatus, WaitReason


def hold_job(actor: Actor, job: Job) -> Job:
    """Keep a queued job from starting until it is released; it keeps its place in the queue.

    Once this has returned, nothing starts it. A second hold changes nothing. ConflictError when
    it has started, JobAlreadyFinalError when it has ended.
    """
    require_hold(actor, job)
    with transaction.atomic():
        # Either the hold comes first or the start, or a release, never both.
        keep(job)
        queued = Job.objects.in_status(JobStatus.QUEUED).filter(pk=job.pk, held=False)
        # The machines of its victims go to the next job, and it has no claim to them any more.
        if queued.update(**held_by(actor), has_claim=False):
            record(actor, "hold", job, before={"held": False}, after={"held": True})
            note_action(job, actor, "hold", f"Held by {actor.user.get_username()}.")
            # It no longer blocks other jobs.
            wake_on_commit("queue")
        read_again(job)
    refuse_ended(job)
    if not job.held:
        raise ConflictError(
            f"Job {job.pk} has started already ({job.status}): only a job that is queued can be "
            "held. Cancel it instead, and run it again later.",
        )
    return job


def release_job(actor: Actor, job: Job) -> Job:
    """Let a held job be scheduled again; one that is not held is left as it is.

    JobAlreadyFinalError when it has ended.
    """
    require_hold(actor, job)
    with transaction.atomic():
        held = Job.objects.in_status(JobStatus.QUEUED).filter(pk=job.pk, held=True)
        if held.update(held=False, hint="", **_what_it_waits_for(job)):
            record(actor, "release", job, before={"held": True}, after={"held": False})
            note_action(job, actor, "release", f"Released by {actor.user.get_username()}.")
            wake_on_commit("queue")
    read_again(job)
    refuse_ended(job)
    return job


def held_by(actor: Actor) -> dict[str, Any]:
    """Return the columns of a job that `actor` holds."""
    return {
        "held": True,
        "wait_reason": WaitReason.HELD,
        "message": f"Held by {actor.user.get_username()}.",
        "hint": "It does not start before it is released, by its button or `mportal release`.",
    }


def _what_it_waits_for(job: Job) -> dict[str, Any]:
    """Return the wait reason of a released job, as far as it is known before the next pass."""
    if changes := wait_for_dependencies(list(job.dependencies.all())):
        return changes
    last = job.attempts.newest()
    if last is None:
        return {"wait_reason": "", "message": ""}
    # It came back because there was no room, and its pause may still last.
    return {"wait_reason": WaitReason.BACKOFF, "message": last.message}
