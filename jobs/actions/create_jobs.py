"""The rows of jobs that were checked: one job each, or an array's, with what they wait for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import yaml
from django.db import transaction

from jobs.actions.checked_spec import Checked, Source
from jobs.actions.children import parent_fields, refuse_children, tell_parent
from jobs.actions.dependency_words import wait_for_dependencies
from jobs.actions.history import record_actions
from jobs.actions.hold import held_by
from jobs.actions.kept_wishes import takes_alike
from jobs.actions.queue_places import counted_of
from jobs.errors import ConflictError
from jobs.models import Job, JobArray, JobDependency, Project
from jobs.permissions import Actor
from jobs.policies.dependency_order import order_of
from jobs.statuses import WaitReason
from jobs.wakeups import wake_on_commit
from monarch_client.runner.crash_points import reach
from monarch_client.spec import PortalBlock
from monarch_client.spec.array_keys import combinations, count_of, variable_of

_LONGEST_NAME = 100


def create_jobs(
    actor: Actor,
    project: Project,
    checked: Sequence[Checked],
    *,
    rerun_of: Job | None = None,
    message: str = "Submitted",
) -> list[Job]:
    """The queued rows with their first events, `message`; call it inside a transaction.

    Those that others need come first. ConflictError when a job that is needed has been deleted,
    and when the job whose program asks may submit no more.
    """
    if rerun_of:
        message = f"Rerun of job {rerun_of.pk}"
    needed = _locked(_to_lock(actor, checked))
    if actor.driver is not None:
        parent, count = (
            needed[actor.driver.job_id],
            sum(count_of(each.spec.portal.array) for each in checked),
        )
        refuse_children(actor.driver, parent, count)
        message = f"Submitted by job {parent.pk}, attempt {actor.driver.number}"
    made: dict[int, list[Job]] = {}
    for place in order_of({i: each.needs.siblings.keys() for i, each in enumerate(checked)}):
        each = checked[place]
        jobs = _jobs_of(actor, project, each, rerun_of)
        needs = [(needed[pk], after) for pk, after in each.needs.jobs.items()]
        for sibling, after in each.needs.siblings.items():
            needs += [(job, after) for job in made[sibling]]
        made[place] = _stored(jobs, needs)
        record_actions(made[place], actor, "rerun" if rerun_of else "submit", message)
    jobs = [job for place in range(len(checked)) for job in made[place]]
    if actor.driver is not None:
        tell_parent(actor.driver, jobs)
    transaction.on_commit(lambda: reach("submit.committed"))
    wake_on_commit("queue")
    reach("submit.stored")
    return jobs


def _to_lock(actor: Actor, checked: Sequence[Checked]) -> set[int]:
    """The jobs that must not end meanwhile: those that are needed, and the one that submits."""
    needed = {pk for each in checked for pk in each.needs.jobs}
    return needed if actor.driver is None else {*needed, actor.driver.job_id}


def _locked(numbers: set[int]) -> dict[int, Job]:
    """The needed jobs: none of them ends, or is deleted, before this transaction does."""
    jobs = Job.objects.filter(pk__in=numbers).order_by("pk").select_for_update(no_key=True)
    found = {job.pk: job for job in jobs} if numbers else {}
    if missing := numbers - found.keys():
        raise ConflictError(f"Job {min(missing)}, which is needed, has been deleted just now.")
    return found


def _stored(jobs: list[Job], needs: Sequence[tuple[Job, str]]) -> list[Job]:
    for job in jobs:
        if not job.held and (told := wait_for_dependencies(_rows(job, needs))):
            job.wait_reason, job.message = told["wait_reason"], told["message"]
    Job.objects.bulk_create(jobs)
    JobDependency.objects.bulk_create(row for job in jobs for row in _rows(job, needs))
    return jobs


def _rows(job: Job, needs: Sequence[tuple[Job, str]]) -> list[JobDependency]:
    return [
        JobDependency(
            job=job,
            needs=needed,
            needs_number=needed.pk,
            needs_name=needed.name,
            after=after,
            ended_as=needed.status if needed.is_final else "",
        )
        for needed, after in needs
    ]


def _jobs_of(actor: Actor, project: Project, checked: Checked, rerun_of: Job | None) -> list[Job]:
    if not checked.spec.portal.array:
        job = _new_job(actor, project, checked, rerun_of=rerun_of)
        if rerun_of is not None and rerun_of.array_id is not None:
            # It takes the place of the one it repeats.
            job.array_id, job.array_index = rerun_of.array_id, rerun_of.array_index
            job.array_values = rerun_of.array_values
        return [job]
    return _members(actor, project, checked)


def _members(actor: Actor, project: Project, checked: Checked) -> list[Job]:
    spec, block = checked.spec, checked.spec.portal
    all_values = list(combinations(block.array))
    array = JobArray.objects.create(
        project=project,
        name=spec.name,
        source=_text_of(checked.source),
        values=[[name, values] for name, values in block.array.items()],
        size=len(all_values),
        max_parallel=block.max_parallel,
        submitted_by=actor.user,
    )
    plain = replace(block, array={}, max_parallel=None)
    return [
        _member(actor, array, checked, plain, (index, values))
        for index, values in enumerate(all_values)
    ]


def _member(
    actor: Actor,
    array: JobArray,
    checked: Checked,
    block: PortalBlock,
    place: tuple[int, dict[str, str]],
) -> Job:
    (index, values), spec = place, checked.spec
    suffix = f"-{index}"
    own = replace(
        spec,
        name=spec.name[: _LONGEST_NAME - len(suffix)] + suffix,
        envs={**spec.envs, **{variable_of(name): value for name, value in values.items()}},
        portal=block,
    )
    member = checked.with_spec(own)
    text = yaml.safe_dump(member.content, sort_keys=False, allow_unicode=True)
    job = _new_job(actor, array.project, replace(member, source=text))
    job.array, job.array_index, job.array_values = array, index, values
    if array.max_parallel is not None and index >= array.max_parallel and not job.held:
        job.wait_reason = WaitReason.PARALLEL
        job.message = f"Array {array.pk} runs at most {_jobs(array.max_parallel)} at once."
    return job


def _new_job(
    actor: Actor, project: Project, checked: Checked, *, rerun_of: Job | None = None
) -> Job:
    spec, content, backend_name = checked.spec, checked.content, checked.backend_name
    # Who runs a job again wants it to run.
    is_held = spec.portal.hold and rerun_of is None
    return Job(
        project=project,
        name=spec.name,
        kind=spec.kind,
        spec=content,
        spec_source=_text_of(checked.source),
        num_nodes=spec.num_nodes,
        backend_name=backend_name,
        queue_name=spec.portal.queue,
        priority=spec.portal.priority,
        **counted_of(content),
        fingerprint=takes_alike(content, backend_name, spec.num_nodes),
        submitted_by=actor.user,
        rerun_of=rerun_of,
        **parent_fields(actor, spec),
        **(held_by(actor) if is_held else {}),
    )


def _text_of(source: Source) -> str:
    return source if isinstance(source, str) else json.dumps(source, indent=2)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
