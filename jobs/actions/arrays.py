"""What is done to all jobs of an array at once."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

from django.db import transaction

from jobs.actions.cancel import cancel_job
from jobs.actions.checked_spec import Checked
from jobs.actions.create_jobs import create_jobs
from jobs.actions.submit import check_specs
from jobs.disk_space import require_room
from jobs.errors import ConflictError, JobAlreadyFinalError, NotFoundError
from jobs.models import Job, JobArray
from jobs.permissions import Actor, Verb, require, require_cancel
from jobs.statuses import JobStatus
from monarch_client.spec.array_keys import variable_of


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
    # A backend may take seconds to answer: nobody waits for its answer in a transaction.
    checked = _checked(actor, array)
    with transaction.atomic():
        # Of two at once one finds the other's jobs in the places already.
        JobArray.objects.select_for_update(no_key=True).get(pk=array.pk)
        again: list[Job] = []
        for job in _failed(array):
            if (alike := checked.get(_in_common(job))) is not None:
                own = _as_it_was(job, alike)
                again += create_jobs(actor, array.project, [own], rerun_of=job)
    if not again:
        raise _none_failed(array)
    return again


def _failed(array: JobArray) -> list[Job]:
    failed = array.jobs.newest_of_arrays().in_status(JobStatus.FAILED, JobStatus.CANCELLED)
    return list(failed.order_by("array_index"))


def _checked(actor: Actor, array: JobArray) -> dict[str, Checked]:
    """By what jobs have in common, the first of them: what fits for one fits for all, as it did
    when the array was submitted.
    """
    alike = {_in_common(job): job for job in reversed(_failed(array))}
    if not alike:
        raise _none_failed(array)
    return {
        common: check_specs(actor, array.project, [job.spec])[0] for common, job in alike.items()
    }


def _in_common(job: Job) -> str:
    """All of its specification but its name and its own values."""
    own = {variable_of(name) for name in job.array_values}
    envs = {name: value for name, value in job.spec.get("envs", {}).items() if name not in own}
    return json.dumps({**job.spec, "name": "", "envs": envs}, sort_keys=True)


def _as_it_was(job: Job, alike: Checked) -> Checked:
    spec = replace(alike.spec, name=job.spec["name"], envs=dict(job.spec.get("envs", {})))
    return replace(alike.with_spec(spec), source=job.spec_source or job.spec)


def _none_failed(array: JobArray) -> ConflictError:
    return ConflictError(f"No job of array {array.pk} has failed or was cancelled.")
