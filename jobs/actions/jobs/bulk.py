"""One action on many jobs: each job is changed, left unchanged or refused by itself.

Every job has a transaction of its own, so a refused job does not keep the others from the action.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum

from django.db import Error, transaction

from jobs.actions.jobs.annotate import label_job
from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.delete import delete_job
from jobs.actions.jobs.hold import hold_job, release_job
from jobs.actions.jobs.present import keep, read_again
from jobs.actions.jobs.prioritize import prioritize_job
from jobs.actions.jobs.rerun import rerun_job
from jobs.errors import DatabaseUnavailableError, NotFoundError, PortalError
from jobs.ground.outages import is_database_away
from jobs.models import Job, Project
from jobs.permissions import Actor, Verb, jobs_of, require
from monarch_client.wire.bulk import BULK_LIMIT, DONE, REFUSED, UNCHANGED, JobOutcome

logger = logging.getLogger(__name__)

# After so many jobs without an answer of the database the others are not tried: each may have
# waited ten seconds for a lock.
_MOST_SILENCES = 3


class BulkAction(StrEnum):
    """An action that many jobs take at once."""

    CANCEL = "cancel"
    RERUN = "rerun"
    HOLD = "hold"
    RELEASE = "release"
    PRIORITIZE = "prioritize"
    LABEL = "label"
    DELETE = "delete"


# The verb that a caller needs to act on any job at all; each job is then checked by its action.
LEAST_VERB = {
    BulkAction.CANCEL: Verb.CANCEL_OWN_JOB,
    BulkAction.RERUN: Verb.RERUN_JOB,
    BulkAction.HOLD: Verb.HOLD_OWN_JOB,
    BulkAction.RELEASE: Verb.HOLD_OWN_JOB,
    BulkAction.PRIORITIZE: Verb.PRIORITIZE_OWN_JOB,
    BulkAction.LABEL: Verb.LABEL_JOB,
    BulkAction.DELETE: Verb.DELETE_JOB,
}


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """An action and its jobs, at most BULK_LIMIT. `priorities` has one for each job to prioritize.

    `labels` has the changes of the labels of each job, None to remove one. `drop_deleted` makes
    reruns leave out dependencies on jobs that were deleted. With an `idempotency_key` a repeated
    request reruns no job again; repeated, the other actions change nothing anyway.
    """

    action: BulkAction
    job_ids: Sequence[int]
    priorities: Mapping[int, int] = field(default_factory=dict)
    labels: Mapping[int, Mapping[str, str | None]] = field(default_factory=dict)
    drop_deleted: bool = False
    idempotency_key: str | None = None


def act_on_jobs(actor: Actor, project: Project, request: BulkRequest) -> list[JobOutcome]:
    """Apply the action to each job and return the outcomes in the order of the request.

    PermissionDeniedError if the actor may do this to no job of the project.
    """
    require(actor, LEAST_VERB[request.action], project)
    numbers = list(dict.fromkeys(request.job_ids))[:BULK_LIMIT]
    rows = jobs_of(actor, project).select_related("project", "submitted_by").in_bulk(numbers)
    outcomes: list[JobOutcome] = []
    silences = 0
    for number in numbers:
        job = rows.get(number)
        name = job.name if job else ""
        if silences == _MOST_SILENCES:
            outcomes.append(_refused(number, name, DatabaseUnavailableError(_NOT_TRIED)))
            continue
        try:
            outcomes.append(_outcome(actor, project, request, number, job))
        except Error as error:
            silences += is_database_away(error)
            outcomes.append(_refused(number, name, _failure_of(error, number)))
    return outcomes


_NOT_TRIED = "Not tried, since the portal's database does not answer now. Try again."


def _failure_of(error: Error, number: int) -> PortalError:
    if is_database_away(error):
        return DatabaseUnavailableError()
    logger.error("an action on job %d failed in the database", number, exc_info=error)
    return PortalError("The action failed in the portal, whose log has the cause.")


def _outcome(
    actor: Actor, project: Project, request: BulkRequest, number: int, job: Job | None
) -> JobOutcome:
    if job is None:
        message = f"There is no job {number} in project {project.slug}."
        return _refused(number, "", NotFoundError(message))
    name = job.name
    try:
        return _STEPS[request.action](actor, job, request)
    except PortalError as error:
        return _refused(number, name, error)


@contextmanager
def _locked(job: Job) -> Iterator[None]:
    """Read `job` and lock it for the block, so that what was before is what an undo restores."""
    with transaction.atomic():
        keep(job)
        read_again(job)
        yield


def _cancel(actor: Actor, job: Job, _request: BulkRequest) -> JobOutcome:
    with _locked(job):
        before = (job.status, job.stop_reason)
        cancel_job(actor, job)
    message = "Cancelled." if job.is_final else "Stopping."
    if (job.status, job.stop_reason) == before:
        return _unchanged(job, "It is already stopping.")
    return _done(job, message)


def _rerun(actor: Actor, job: Job, request: BulkRequest) -> JobOutcome:
    again = rerun_job(
        actor, job, drop_deleted=request.drop_deleted, idempotency_key=request.idempotency_key
    )
    return replace(_done(job, f"Rerun as job {again.pk}."), new_job=again.pk)


def _hold(actor: Actor, job: Job, _request: BulkRequest) -> JobOutcome:
    with _locked(job):
        was_held = job.held
        hold_job(actor, job)
    return _unchanged(job, "It is already held.") if was_held else _done(job, "Held.")


def _release(actor: Actor, job: Job, _request: BulkRequest) -> JobOutcome:
    with _locked(job):
        was_held = job.held
        release_job(actor, job)
    return _done(job, "Released.") if was_held else _unchanged(job, "It is not held.")


def _prioritize(actor: Actor, job: Job, request: BulkRequest) -> JobOutcome:
    with _locked(job):
        before = job.priority
        prioritize_job(actor, job, request.priorities[job.pk])
    if job.priority == before:
        return _unchanged(job, f"It already has priority {before}.")
    message = f"Priority changed from {before} to {job.priority}."
    return replace(_done(job, message), previous_priority=before)


def _label(actor: Actor, job: Job, request: BulkRequest) -> JobOutcome:
    """Change labels of the job; the outcome has the changes that undo it."""
    with _locked(job):
        before, changes = job.labels, request.labels[job.pk]
        label_job(actor, job, changes)
    if job.labels == before:
        return _unchanged(job, "It has these labels already.")
    was = {name: before.get(name) for name in changes if before.get(name) != job.labels.get(name)}
    return replace(_done(job, "Labels changed."), previous_labels=was)


def _delete(actor: Actor, job: Job, _request: BulkRequest) -> JobOutcome:
    outcome = _done(job, "Deleted.")  # the row has no number afterwards
    delete_job(actor, job)
    return outcome


def _done(job: Job, message: str) -> JobOutcome:
    return JobOutcome(
        job=job.pk,
        name=job.name,
        result=DONE,
        message=message,
        code="",
        new_job=None,
        previous_priority=None,
        previous_labels=None,
    )


def _unchanged(job: Job, message: str) -> JobOutcome:
    return replace(_done(job, message), result=UNCHANGED)


def _refused(number: int, name: str, error: PortalError) -> JobOutcome:
    return JobOutcome(
        job=number,
        name=name,
        result=REFUSED,
        message=error.summary,
        code=error.code,
        new_job=None,
        previous_priority=None,
        previous_labels=None,
    )


_STEPS: dict[BulkAction, Callable[[Actor, Job, BulkRequest], JobOutcome]] = {
    BulkAction.CANCEL: _cancel,
    BulkAction.RERUN: _rerun,
    BulkAction.HOLD: _hold,
    BulkAction.RELEASE: _release,
    BulkAction.PRIORITIZE: _prioritize,
    BulkAction.LABEL: _label,
    BulkAction.DELETE: _delete,
}

# What takes an action back, for the jobs that it changed.
_OPPOSITES = {
    BulkAction.HOLD: BulkAction.RELEASE,
    BulkAction.RELEASE: BulkAction.HOLD,
    BulkAction.PRIORITIZE: BulkAction.PRIORITIZE,
    BulkAction.LABEL: BulkAction.LABEL,
    BulkAction.RERUN: BulkAction.CANCEL,
}


def undo_of(action: BulkAction, outcomes: Sequence[JobOutcome]) -> BulkRequest | None:
    """Return the request that takes back what was done; None if nothing can be.

    A rerun is taken back by a cancellation of the new jobs. Cancelled and deleted jobs stay so.
    """
    done = [outcome for outcome in outcomes if outcome.result == DONE]
    opposite = _OPPOSITES.get(action)
    if opposite is None or not done:
        return None
    numbers = [outcome.new_job or outcome.job for outcome in done]
    priorities = {o.job: o.previous_priority for o in done if o.previous_priority is not None}
    labels = {o.job: o.previous_labels for o in done if o.previous_labels is not None}
    return BulkRequest(opposite, numbers, priorities, labels)
