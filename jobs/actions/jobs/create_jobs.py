"""Store new jobs, single or in arrays, with their dependencies."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from jobs.actions.jobs.children import note_on_parent, refuse_children
from jobs.actions.jobs.draft_jobs import Draft
from jobs.actions.jobs.follow_reruns import follow_reruns
from jobs.actions.jobs.history import note_actions
from jobs.actions.projects.keep_project import keep_open
from jobs.admission.dependency_messages import row_of, wait_for_dependencies
from jobs.background.hints import wake_on_commit
from jobs.errors import ConflictError, NotFoundError
from jobs.models import Job, JobArray, JobDependency
from jobs.permissions import Actor, Verb
from jobs.policies.dependency_order import order_of
from jobs.statuses import WaitReason
from monarch_client.crash_points import reach

# Rows in one statement: putting it together is a moment in which the transaction rests.
_BATCH = 250


def create_jobs(actor: Actor, drafts: Sequence[Draft], *, message: str = "Submitted") -> list[Job]:
    """Store queued jobs with their first events, `message`; call it inside a transaction.

    Those that others need come first. ConflictError when a job that is needed has been deleted,
    and when the job whose program asks may submit no more; NotFoundError when one that is repeated
    has been deleted. PermissionDeniedError when the project has been archived meanwhile.
    """
    keep_open(drafts[0].jobs[0].project, Verb.SUBMIT_JOB)
    needed = _locked(_to_lock(actor, drafts), _repeated(drafts))
    if actor.driver is not None:
        parent = needed[actor.driver.job_id]
        refuse_children(actor.driver, parent, sum(len(each.jobs) for each in drafts))
        message = f"Submitted by job {parent.pk}, attempt {actor.driver.number}"
    for place in order_of({i: each.needs.siblings.keys() for i, each in enumerate(drafts)}):
        draft = drafts[place]
        needs = [(needed[pk], after) for pk, after in draft.needs.jobs.items()]
        for sibling, after in draft.needs.siblings.items():
            needs += [(job, after) for job in drafts[sibling].jobs]
        _store(draft, needs)
    jobs = [job for each in drafts for job in each.jobs]
    if any(job.rerun_of_id for job in jobs):
        follow_reruns(jobs)
    _record(actor, jobs, message)
    if actor.driver is not None:
        note_on_parent(actor.driver, jobs)
    transaction.on_commit(lambda: reach("submit.committed"))
    wake_on_commit("queue")
    reach("submit.stored")
    return jobs


def _to_lock(actor: Actor, drafts: Sequence[Draft]) -> set[int]:
    """Return the jobs that must not end meanwhile: those that are needed, and the submitter."""
    needed = {pk for each in drafts for pk in each.needs.jobs}
    return needed if actor.driver is None else {*needed, actor.driver.job_id}


def _repeated(drafts: Sequence[Draft]) -> set[int]:
    jobs = (job for each in drafts for job in each.jobs)
    return {job.rerun_of_id for job in jobs if job.rerun_of_id is not None}


def _locked(needed: set[int], repeated: set[int]) -> dict[int, Job]:
    """Lock jobs that must not end, or be deleted, before this transaction does; return them.

    All in one statement, by their numbers: two that lock some of the same never wait in a circle.
    """
    numbers = needed | repeated
    jobs = Job.objects.filter(pk__in=numbers).order_by("pk").select_for_update(no_key=True)
    found = {job.pk: job for job in jobs.defer("spec_source")} if numbers else {}
    if gone := repeated - found.keys():
        raise NotFoundError(f"Job {min(gone)}, which was to run again, has been deleted just now.")
    if missing := needed - found.keys():
        raise ConflictError(f"Job {min(missing)}, which is needed, has been deleted just now.")
    return found


def _store(draft: Draft, needs: Sequence[tuple[Job, str]]) -> None:
    if draft.array is not None:
        draft.array.save(force_insert=True)
        _say_who_waits(draft.array, draft.jobs)
    waits = wait_for_dependencies([row_of(None, *each) for each in needs])
    for job in draft.jobs:
        if waits and not job.held:
            job.wait_reason, job.message = waits["wait_reason"], waits["message"]
    Job.objects.bulk_create(draft.jobs, batch_size=_BATCH)
    rows = (row_of(job, *each) for job in draft.jobs for each in needs)
    JobDependency.objects.bulk_create(rows, batch_size=_BATCH)


def _say_who_waits(array: JobArray, jobs: Sequence[Job]) -> None:
    """Say of all beyond the first `max_parallel` what they wait for."""
    most = array.max_parallel
    if most is None:
        return
    message = f"Array {array.pk} runs at most {'1 job' if most == 1 else f'{most} jobs'} at once."
    for job in jobs[most:]:
        if not job.held:
            job.wait_reason, job.message = WaitReason.PARALLEL, message


def _record(actor: Actor, jobs: Sequence[Job], message: str) -> None:
    reruns = [(job, f"Rerun of job {job.rerun_of_id}") for job in jobs if job.rerun_of_id]
    others = [(job, message) for job in jobs if not job.rerun_of_id]
    for verb, some in (("rerun", reruns), ("submit", others)):
        if some:
            note_actions(some, actor, verb)
