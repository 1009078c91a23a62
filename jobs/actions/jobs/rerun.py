"""Running a job again as a new one, with the spec it had."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db import transaction

from jobs.actions.jobs.create_jobs import create_jobs
from jobs.actions.jobs.draft_jobs import Draft, draft_rerun
from jobs.actions.jobs.history import record_action
from jobs.actions.jobs.submit import check_specs
from jobs.admission.checked_spec import Checked
from jobs.errors import InvalidSpecError
from jobs.ground.disk_space import require_room
from jobs.models import Job
from jobs.permissions import Actor, Verb, require
from monarch_client.spec import SpecCode


def rerun_job(actor: Actor, job: Job) -> Job:
    """A new job from the spec of `job`, which may be in any status.

    InvalidSpecError when the spec no longer fits (an upload, a backend or a job that it needs is
    gone). NotFoundError when `job` has been deleted meanwhile.
    """
    require(actor, Verb.SUBMIT_JOB, job.project)
    require_room()
    checked = check_again(actor, job)
    checked = replace(checked, source=job.spec_source or job.spec)
    draft = Draft([draft_rerun(actor, job, checked)], checked.needs)
    with transaction.atomic():
        [again] = create_jobs(actor, [draft])
        record_action(job, actor, "rerun", f"Run again as job {again.pk}")
    return again


def check_again(actor: Actor, job: Job) -> Checked:
    """Check the specification of `job` as it would be submitted now.

    InvalidSpecError as for a submit; if a needed job is the cause, its hint says how to rerun.
    """
    try:
        [checked] = check_specs(actor, job.project, [job.spec])
    except InvalidSpecError as error:
        errors = [_with_way_out(each) for each in error.data["errors"]]
        raise InvalidSpecError(errors=errors) from error
    return checked


def _with_way_out(error: dict[str, Any]) -> dict[str, Any]:
    if error["code"] not in {SpecCode.UNKNOWN_JOB, SpecCode.DEPENDENCY_FAILED}:
        return error
    way_out = (
        "To run it without that job, submit its specification as a new job with another "
        "portal.depends_on."
    )
    return {**error, "message": f"{error['message']} {way_out}"}
