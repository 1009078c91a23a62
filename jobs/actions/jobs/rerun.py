"""Running a job again as a new one, with the spec it had."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from django.db import IntegrityError, transaction

from jobs.actions.jobs.create_jobs import create_jobs
from jobs.actions.jobs.draft_jobs import Draft, draft_rerun, yaml_of
from jobs.actions.jobs.history import note_action
from jobs.actions.jobs.submit import check_specs, jobs_of_key
from jobs.admission.checked_spec import Checked, Source
from jobs.admission.dependencies import without_deleted
from jobs.audit.record import record
from jobs.errors import InvalidSpecError
from jobs.ground.disk_space import require_room
from jobs.models import IdempotencyKey, Job
from jobs.permissions import Actor, Verb, require
from monarch_client.spec import JobSpec, SpecCode

_WAYS_OUT = {
    SpecCode.UNKNOWN_JOB: "If it was deleted, rerun without it: `mportal rerun --drop-deleted`, "
    "`drop_deleted` in REST, or the button on the page.",
    SpecCode.DEPENDENCY_FAILED: "To run it without that job, submit its specification as a new job "
    "with another portal.depends_on.",
}


def rerun_job(
    actor: Actor, job: Job, *, drop_deleted: bool = False, idempotency_key: str | None = None
) -> Job:
    """Submit a new job from the spec of `job`, which may be in any status.

    `drop_deleted` leaves out dependencies on jobs that were deleted. InvalidSpecError when the spec
    no longer fits: an upload, a backend or a job that it needs does not exist any more.
    NotFoundError when `job` was deleted meanwhile. The same `idempotency_key` gives the same new
    job again, for 24 hours.
    """
    require(actor, Verb.RERUN_JOB, job.project)
    key, digest = _stored_key(job, idempotency_key), _digest(f"drop_deleted={drop_deleted}")
    if key and (made := jobs_of_key(actor, job.project, key, digest)):
        return made[0]
    require_room()
    checked = check_again(actor, job, drop_deleted=drop_deleted)
    checked = replace(checked, source=source_of(job, checked))
    draft = Draft([draft_rerun(actor, job, checked)], checked.needs)
    try:
        with transaction.atomic():
            [again] = create_jobs(actor, [draft])
            record(actor, "rerun", job, after={"job": again.pk})
            note_action(job, actor, "rerun", f"Run again as job {again.pk}")
            if key:
                IdempotencyKey.objects.create(
                    user=actor.user, project=job.project, key=key, body_digest=digest, job=again
                )
    except IntegrityError:
        # Another request with the same key committed first: its job is the answer.
        if key and (made := jobs_of_key(actor, job.project, key, digest)):
            return made[0]
        raise
    return again


def _stored_key(job: Job, key: str | None) -> str:
    """Return the key of this job's rerun, apart from the keys of submits; empty without a key."""
    return "rerun " + _digest(f"{job.pk} {key}") if key else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def check_again(actor: Actor, job: Job, *, drop_deleted: bool = False) -> Checked:
    """Check the specification of `job` as it would be submitted now.

    `drop_deleted` leaves out dependencies on jobs that were deleted. InvalidSpecError as for a
    submit; if a needed job is the cause, the message says how to rerun.
    """
    content = without_deleted(job.project, job.spec) if drop_deleted else job.spec
    try:
        [checked] = check_specs(actor, job.project, [content])
    except InvalidSpecError as error:
        errors = [_with_way_out(each) for each in error.data["errors"]]
        raise InvalidSpecError(errors=errors) from error
    return checked


def source_of(job: Job, checked: Checked) -> Source:
    """Return the text of a rerun's specification: as it was submitted, unless a job was dropped."""
    before = JobSpec.from_dict(job.spec)
    if checked.spec.portal.depends_on != before.portal.depends_on:
        return yaml_of(checked.content)
    return job.spec_source or job.spec


def _with_way_out(error: dict[str, Any]) -> dict[str, Any]:
    way_out = _WAYS_OUT.get(error["code"])
    return {**error, "message": f"{error['message']} {way_out}"} if way_out else error
