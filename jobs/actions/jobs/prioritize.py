"""Changing a job's priority while it waits."""

from __future__ import annotations

from django.db import transaction

from jobs.actions.jobs.history import note_action
from jobs.actions.jobs.present import keep, read_again, refuse_ended
from jobs.audit.record import record
from jobs.background.hints import wake_on_commit
from jobs.errors import ConflictError
from jobs.models import Job
from jobs.permissions import Actor, require_prioritize
from jobs.statuses import JobStatus


def prioritize_job(actor: Actor, job: Job, priority: int) -> Job:
    """Have a queued job, held or not, wait with `priority`, 0 to 100; twice is as good as once.

    Among equals it keeps the place of its age. ConflictError when it has started,
    JobAlreadyFinalError when it has ended. Its specification, and so a rerun, stays as it was.
    """
    require_prioritize(actor, job)
    with transaction.atomic():
        # Either this comes first or the start, never both.
        keep(job)
        read_again(job)
        before = job.priority
        queued = Job.objects.in_status(JobStatus.QUEUED).filter(pk=job.pk)
        if queued.exclude(priority=priority).update(priority=priority):
            values = {"priority": before}, {"priority": priority}
            record(actor, "prioritize", job, before=values[0], after=values[1])
            name = actor.user.get_username()
            message = f"Priority changed from {before} to {priority} by {name}."
            note_action(job, actor, "prioritize", message)
            wake_on_commit("queue")
            read_again(job)
    refuse_ended(job)
    if job.status != JobStatus.QUEUED:
        raise ConflictError(
            f"Job {job.pk} has started already ({job.status}): only a job that waits has a "
            "priority to change."
        )
    return job
