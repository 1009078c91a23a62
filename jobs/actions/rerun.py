"""Running a job again as a new one, with the spec it had."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction

from jobs.actions.create_jobs import create_jobs
from jobs.actions.draft_jobs import Draft, draft_rerun
from jobs.actions.history import record_action
from jobs.actions.present import keep
from jobs.actions.submit import check_specs
from jobs.disk_space import require_room
from jobs.models import Job
from jobs.permissions import Actor, Verb, require


def rerun_job(actor: Actor, job: Job) -> Job:
    """A new job from the spec of `job`, which may be in any status.

    InvalidSpecError when the spec no longer fits (an upload, a backend or a job that it needs is
    gone). NotFoundError when `job` has been deleted meanwhile.
    """
    require(actor, Verb.SUBMIT_JOB, job.project)
    require_room()
    [checked] = check_specs(actor, job.project, [job.spec])
    checked = replace(checked, source=job.spec_source or job.spec)
    draft = Draft([draft_rerun(actor, job, checked)], checked.needs)
    with transaction.atomic():
        keep(job)
        [again] = create_jobs(actor, [draft])
        record_action(job, actor, "rerun", f"Run again as job {again.pk}")
    return again
