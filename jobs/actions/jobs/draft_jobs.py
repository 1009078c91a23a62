"""Draft the rows of checked jobs, before they are stored: one job, or all jobs of an array.

Each row holds the whole specification, which takes seconds for a thousand jobs. Drafting happens
before the transaction that stores them, because the database ends transactions that stay idle.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import yaml

from jobs.actions.jobs.children import parent_fields
from jobs.actions.jobs.hold import held_by
from jobs.admission.checked_spec import Checked, Source
from jobs.admission.dependencies import Needs
from jobs.models import Job, JobArray, Project
from jobs.permissions import Actor
from monarch_client.spec import PortalBlock
from monarch_client.spec.array_keys import combinations, variable_of

_LONGEST_NAME = 100
# Use libyaml where it was built: it is ten times as fast.
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True, slots=True)
class Draft:
    """New jobs with the same dependencies; `array`: their new array, if any."""

    jobs: list[Job]
    needs: Needs
    array: JobArray | None = None


def draft_jobs(actor: Actor, project: Project, checked: Checked) -> Draft:
    """Return the job of a checked specification, or all jobs of its array."""
    if checked.spec.portal.array:
        return _members(actor, project, checked)
    return Draft([_new_job(actor, project, checked)], checked.needs)


def terms_of(job: Job) -> dict[str, Any]:
    """Return what the audit log keeps of a new job; its specification may hold secrets."""
    names = ("backend_name", "queue_name", "priority", "num_nodes", "held")
    return {name: getattr(job, name) for name in names}


def draft_rerun(actor: Actor, job: Job, checked: Checked) -> Job:
    """Return a job that repeats `job`, at the same index if it belongs to an array."""
    again = _new_job(actor, job.project, checked, rerun_of=job)
    if job.array_id is not None:
        again.array_id, again.array_index = job.array_id, job.array_index
        again.array_values = job.array_values
    return again


def _members(actor: Actor, project: Project, checked: Checked) -> Draft:
    spec, block = checked.spec, checked.spec.portal
    all_values = list(combinations(block.array))
    array = JobArray(
        project=project,
        name=spec.name,
        source=_text_of(checked.source),
        values=[[name, values] for name, values in block.array.items()],
        size=len(all_values),
        max_parallel=block.max_parallel,
        submitted_by=actor.user,
    )
    plain = replace(block, array={}, max_parallel=None)
    jobs = [
        _member(actor, array, checked, plain, (index, values))
        for index, values in enumerate(all_values)
    ]
    return Draft(jobs, checked.needs, array)


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
    job = _new_job(actor, array.project, replace(member, source=yaml_of(member.content)))
    job.array, job.array_index, job.array_values = array, index, values
    return job


def _new_job(
    actor: Actor, project: Project, checked: Checked, *, rerun_of: Job | None = None
) -> Job:
    spec, request = checked.spec, checked.request
    # Who runs a job again wants it to run.
    is_held = spec.portal.hold and rerun_of is None
    return Job(
        project=project,
        name=spec.name,
        kind=spec.kind,
        spec=checked.content,
        spec_source=_text_of(checked.source),
        **request.columns(),
        request_options=request.options(),
        priority=spec.portal.priority,
        labels=spec.portal.labels,
        submitted_by=actor.user,
        rerun_of=rerun_of,
        **parent_fields(actor, spec),
        **(held_by(actor) if is_held else {}),
    )


def yaml_of(content: dict[str, Any]) -> str:
    """Return a specification as the YAML text that a user may edit."""
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


def _text_of(source: Source) -> str:
    return source if isinstance(source, str) else json.dumps(source, indent=2)
