"""What is done to all jobs of an array at once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from django.db import transaction

from jobs.actions.cancel import cancel_job
from jobs.actions.create_jobs import create_jobs
from jobs.actions.submit import check_specs
from jobs.disk_space import require_room
from jobs.errors import ConflictError, JobAlreadyFinalError, NotFoundError
from jobs.models import Job, JobArray
from jobs.permissions import Actor, Verb, require, require_cancel
from jobs.statuses import JobStatus


def cancel_array(actor: Actor, array: JobArray) -> int:
    """End all jobs of `array` that have not ended; how many there were.

    Those that wait go first, so that none of them starts in the place of one that is stopped. A
    second call changes nothing.
    """
    jobs = array.jobs.unfinished().select_related("project")
    if actor.driver is not None:
        # Somebody may have run one of its children again: that is theirs.
        jobs = jobs.filter(parent=actor.driver.job_id)
    queued = list(jobs.in_status(JobStatus.QUEUED).order_by("-pk"))
    others = list(jobs.exclude(status=JobStatus.QUEUED).order_by("-pk"))
    for job in (*queued, *others):
        require_cancel(actor, job)
    if not queued and not others:
        require(actor, Verb.CANCEL_OWN_JOB, array.project)
    for job in (*queued, *others):
        # It may have ended, and been deleted, by itself meanwhile.
        with suppress(JobAlreadyFinalError, NotFoundError):
            cancel_job(actor, job)
    return len(queued) + len(others)


def rerun_failed(actor: Actor, array: JobArray) -> list[Job]:
    """Run those jobs of `array` again that failed or were cancelled, in their places.

    ConflictError when there is none. InvalidSpecError as for a rerun; then none runs again.
    """
    require(actor, Verb.SUBMIT_JOB, array.project)
    require_room()
    with transaction.atomic():
        # Of two at once one finds the other's jobs in the places already.
        JobArray.objects.select_for_update(no_key=True).get(pk=array.pk)
        failed = array.jobs.newest_of_arrays().in_status(JobStatus.FAILED, JobStatus.CANCELLED)
        jobs = list(failed.order_by("array_index"))
        if not jobs:
            raise ConflictError(f"No job of array {array.pk} has failed or was cancelled.")
        again: list[Job] = []
        for job in jobs:
            [checked] = check_specs(actor, array.project, [job.spec])
            checked = replace(checked, source=job.spec_source or job.spec)
            again += create_jobs(actor, array.project, [checked], rerun_of=job)
    return again
