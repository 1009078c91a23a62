"""Cancel the jobs of an array, or run those that failed again, all at once."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace

from django.db import transaction
from django.db.models import Case, Q, When

from jobs.actions.jobs.cancel import cancel_job, cancel_together
from jobs.actions.jobs.create_jobs import create_jobs
from jobs.actions.jobs.draft_jobs import Draft, draft_rerun
from jobs.actions.jobs.rerun import check_again, source_of
from jobs.admission.checked_spec import Checked
from jobs.audit.record import record
from jobs.errors import ConflictError, JobAlreadyFinalError, NotFoundError
from jobs.ground.disk_space import require_room
from jobs.models import Job, JobArray
from jobs.models.job import JobQuerySet
from jobs.permissions import Actor, Verb, require, require_cancel
from jobs.statuses import JobStatus, StopReason
from monarch_client.spec.array_keys import variable_of


def cancel_array(actor: Actor, array: JobArray) -> int:
    """End all jobs of `array` that have not ended; how many there were.

    Those that wait go first, so that none of them starts in the place of one that is stopped. A
    second call changes nothing.
    """
    jobs = array.jobs.unfinished()
    if actor.driver is not None:
        # A user may have run one of its children again: that one is the user's.
        jobs = jobs.filter(parent=actor.driver.job_id)
    found = list(jobs.select_related("project").defer("spec", "spec_source"))
    # The required permission depends on who submitted the job.
    for job in {job.submitted_by_id: job for job in found}.values():
        require_cancel(actor, job)
    if not found:
        require(actor, Verb.CANCEL_OWN_JOB, array.project)
    with transaction.atomic():
        if count := cancel_together(actor, [job.pk for job in found]):
            record(actor, "cancel", array, after={"cancelled_jobs": count})
    # Cancel the jobs that others were changing meanwhile: queued ones first, newest first.
    rest = jobs.exclude(Q(status=JobStatus.STOPPING) & ~Q(stop_reason=StopReason.PREEMPTED))
    is_queued = Case(When(status=JobStatus.QUEUED, then=0), default=1)
    for job in rest.select_related("project").order_by(is_queued, "-pk"):
        # It may have ended, and been deleted, by itself meanwhile.
        with suppress(JobAlreadyFinalError, NotFoundError):
            cancel_job(actor, job)
    return len(found)


def rerun_failed(actor: Actor, array: JobArray, *, drop_deleted: bool = False) -> list[Job]:
    """Run the failed and cancelled jobs of `array` again, each at its index.

    `drop_deleted` leaves out dependencies on jobs that were deleted.
    ConflictError when there is none. NotFoundError when one was deleted meanwhile, InvalidSpecError
    as for a rerun; then none runs again.
    """
    require(actor, Verb.RERUN_JOB, array.project)
    require_room()
    # A backend may take seconds to answer, and so may drafts of many jobs: do both before the
    # transaction.
    reruns = _Reruns(actor, _checked(actor, array, drop_deleted=drop_deleted))
    reruns.drafts_of(_failed(array))
    with transaction.atomic():
        # Of two at once one finds the other's jobs in the places already.
        JobArray.objects.select_for_update(no_key=True).get(pk=array.pk)
        drafts = reruns.drafts_of(_failed(array))
        again = create_jobs(actor, drafts) if drafts else []
        if again:
            record(actor, "rerun_failed", array, after={"jobs": [job.pk for job in again]})
    if not again:
        raise _none_failed(array)
    return again


@dataclass(frozen=True, slots=True)
class _Reruns:
    """A cache of reruns by the number of the job that they repeat; each is drafted once.

    `checked`: the checked specification for each group of jobs that differ only in name and values.
    """

    actor: Actor
    checked: dict[str, Checked]
    made: dict[int, Job] = field(default_factory=dict)

    def drafts_of(self, failed: JobQuerySet) -> list[Draft]:
        """Return drafts that repeat the `failed` jobs; skip jobs whose group was not checked."""
        drafts: dict[str, Draft] = {}
        for job in failed.select_related("project"):
            common = _in_common(job)
            if (alike := self.checked.get(common)) is None:
                continue
            if job.pk not in self.made:
                self.made[job.pk] = draft_rerun(self.actor, job, _as_it_was(job, alike))
            draft = drafts.setdefault(common, Draft([], alike.needs))
            draft.jobs.append(self.made[job.pk])
        return list(drafts.values())


def _failed(array: JobArray) -> JobQuerySet:
    failed = array.jobs.newest_of_arrays().in_status(JobStatus.FAILED, JobStatus.CANCELLED)
    return failed.order_by("array_index")


def _checked(actor: Actor, array: JobArray, *, drop_deleted: bool) -> dict[str, Checked]:
    """Check one job of each group that differs only in name and values; return it by group.

    What is valid for one is valid for all, as it was when the array was submitted.
    """
    alike = {
        _in_common(job): job for job in reversed(list(_failed(array).select_related("project")))
    }
    if not alike:
        raise _none_failed(array)
    return {
        common: check_again(actor, job, drop_deleted=drop_deleted) for common, job in alike.items()
    }


def _in_common(job: Job) -> str:
    """Return the job's specification without its name and its own values."""
    own = {variable_of(name) for name in job.array_values}
    envs = {name: value for name, value in job.spec.get("envs", {}).items() if name not in own}
    return json.dumps({**job.spec, "name": "", "envs": envs}, sort_keys=True)


def _as_it_was(job: Job, alike: Checked) -> Checked:
    spec = replace(alike.spec, name=job.spec["name"], envs=dict(job.spec.get("envs", {})))
    own = alike.with_spec(spec)
    return replace(own, source=source_of(job, own))


def _none_failed(array: JobArray) -> ConflictError:
    return ConflictError(f"No job of array {array.pk} has failed or was cancelled.")
