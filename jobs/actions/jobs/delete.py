"""Deleting an ended job with everything it left: log, attempts, events."""

from __future__ import annotations

from django.db import transaction

from jobs.actions.jobs.present import keep
from jobs.audit.record import record
from jobs.errors import ConflictError, JobNotFinalError
from jobs.live.channel import publish_on_commit
from jobs.logs.deletion import delete_log
from jobs.models import Cluster, Job
from jobs.permissions import Actor, Verb, require


def delete_job(actor: Actor, job: Job) -> None:
    """Remove an ended job for good.

    JobNotFinalError while it runs; ConflictError while its machines are being terminated, since
    the row is what the tear-down is driven by. One that is kept for other jobs stays.
    NotFoundError when another request deleted it first.
    """
    require(actor, Verb.DELETE_JOB, job.project)
    if not job.is_final:
        raise JobNotFinalError(f"Job {job.pk} is {job.status}; cancel it first.")
    attempts = list(job.attempts.all())
    machines = Cluster.objects.existing().filter(attempts__job=job)
    if machines.exclude(is_reusable=True, release_requested_at=None).exists():
        raise ConflictError(f"The machines of job {job.pk} are being terminated; try again soon.")
    with transaction.atomic():
        # The logs first, as the ingest of frames does: the two must not wait for each other.
        for attempt in attempts:
            delete_log(attempt)
        keep(job)
        publish_on_commit(job)
        record(actor, "delete_job", job, before={"status": job.status})
        Job.objects.filter(pk=job.pk).delete()
