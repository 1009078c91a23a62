"""Submitting a job: from text to a queued row, or every error at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction

from jobs.actions.jobs.children import would_end_with
from jobs.actions.jobs.create_jobs import create_jobs
from jobs.actions.jobs.draft_jobs import Draft, draft_jobs, terms_of
from jobs.admission.checked_spec import Checked, Source
from jobs.admission.dependencies import find_dependencies
from jobs.admission.policies import backend_problems, policy_problems
from jobs.admission.queues import queue_problems
from jobs.audit.record import record_created
from jobs.backends import registry
from jobs.errors import BackendUnavailableError, IdempotencyConflictError, InvalidSpecError
from jobs.ground import clock
from jobs.ground.disk_space import require_room
from jobs.models import IdempotencyKey, Job, JobArray, Project, ProjectSecret
from jobs.permissions import Actor, Verb, require
from monarch_client.spec import InvalidSpecErrors, JobSpec, SpecCode, SpecError
from monarch_client.spec.array_keys import count_of

IDEMPOTENCY_WINDOW = timedelta(hours=24)

# Submitted together.
MOST_DOCUMENTS = 100
# Those of arrays included: they are stored in one transaction, which others wait for.
MOST_JOBS = 2_000


def submit_job(
    actor: Actor,
    project: Project,
    source: Source,
    *,
    idempotency_key: str | None = None,
) -> Job:
    """Check `source` and queue it as a job of `project`; of an array, the first of its jobs.

    As `submit_jobs` otherwise.
    """
    return submit_jobs(actor, project, [source], idempotency_key=idempotency_key)[0]


def submit_jobs(
    actor: Actor,
    project: Project,
    sources: Sequence[Source],
    *,
    idempotency_key: str | None = None,
) -> list[Job]:
    """Check `sources`, whose jobs may need one another, and queue all of them or none.

    With an `idempotency_key` (per user and project, 24 hours) the same body gives the same jobs
    again; IdempotencyConflictError when the body differs. InvalidSpecError carries every error in
    `data["errors"]`; where there are several sources, each with its number as `document`, from 0.
    """
    require(actor, Verb.SUBMIT_JOB, project)
    idempotency_key = _own_key(actor, idempotency_key)
    digest = _body_digest(sources[0] if len(sources) == 1 else list(sources))
    if idempotency_key and (jobs := jobs_of_key(actor, project, idempotency_key, digest)):
        return jobs
    require_room()
    checked = check_specs(actor, project, sources)
    drafts = [draft_jobs(actor, project, each) for each in checked]
    try:
        with transaction.atomic():
            jobs = create_jobs(actor, drafts)
            record_created(actor, "submit", [_created_by(each) for each in drafts])
            if idempotency_key:
                IdempotencyKey.objects.create(
                    user=actor.user,
                    project=project,
                    key=idempotency_key,
                    body_digest=digest,
                    job=jobs[0],
                    job_ids=[job.pk for job in jobs[1:]],
                )
    except IntegrityError:
        # Another request with the same key committed first: its jobs are the answer.
        if idempotency_key and (jobs := jobs_of_key(actor, project, idempotency_key, digest)):
            return jobs
        raise
    return jobs


def _created_by(draft: Draft) -> tuple[Job | JobArray, dict[str, Any]]:
    """Return what a draft became, its array or its job, with the values that are recorded."""
    first = draft.jobs[0]
    if draft.array is None:
        return first, terms_of(first)
    return draft.array, {**terms_of(first), "jobs": len(draft.jobs)}


def expect_job() -> None:
    """Begin with what checking a job takes seconds for, while it is being written."""
    registry.warm_up()


def check_spec(actor: Actor, project: Project, source: Source) -> Checked:
    """Parse `source` and check it against project and backend; stores nothing."""
    return check_specs(actor, project, [source])[0]


def check_specs(actor: Actor, project: Project, sources: Sequence[Source]) -> list[Checked]:
    """Check specifications that are submitted together, with what they wait for."""
    require(actor, Verb.SUBMIT_JOB, project)
    if not 0 < len(sources) <= MOST_DOCUMENTS:
        message = f"Give 1 to {MOST_DOCUMENTS} specifications."
        raise InvalidSpecError(errors=[SpecError("", None, "too_large", message).to_dict()])
    specs: list[JobSpec | None] = []
    checked: list[Checked] = []
    errors: list[dict[str, Any]] = []
    for number, source in enumerate(sources):
        spec, found = _parsed(actor, source)
        if spec is not None and spec.serves_parent:
            spec, found = _serving_parent(actor, spec)
        if spec is not None:
            fits, found = _resolved(actor, project, spec, source)
            checked += fits
        specs.append(spec)
        errors += [_numbered(each, number, len(sources)) for each in found]
    errors += _too_many_jobs(specs)
    needs, problems = find_dependencies(project, specs, would_end_with(actor))
    for number, (spec, found_here) in enumerate(zip(specs, problems, strict=True)):
        if spec is not None:
            own_errors = [_error(spec, *problem) for problem in found_here]
            errors += [_numbered(each, number, len(sources)) for each in own_errors]
    if errors:
        raise InvalidSpecError(errors=errors)
    return [replace(each, needs=needed) for each, needed in zip(checked, needs, strict=True)]


def _parsed(actor: Actor, source: Source) -> tuple[JobSpec | None, list[dict[str, Any]]]:
    """Return the specification, if it can be read, and what keeps it from being read."""
    try:
        return JobSpec.parse(source, admin=_may_use_admin_keys(actor), for_server=True), []
    except InvalidSpecErrors as error:
        return None, [row.to_dict() for row in error.errors]


def _serving_parent(actor: Actor, spec: JobSpec) -> tuple[JobSpec | None, list[dict[str, Any]]]:
    """Return the specification of a child that serves its parent's driver, completed from there."""
    if actor.driver is None:
        message = (
            "portal.driver: parent is for jobs that the driver of a Monarch job submits, with "
            "mportal_runtime.request_mesh."
        )
        return None, [_error(spec, "portal.driver", SpecCode.CONFLICT, message)]
    job = actor.driver.job
    earlier = Job.objects.filter(parent=job).count()
    return spec.completed_from(JobSpec.from_dict(job.spec), earlier), []


def _resolved(
    actor: Actor, project: Project, spec: JobSpec, source: Source
) -> tuple[list[Checked], list[dict[str, Any]]]:
    """Return the checked specification, if project, backend and queue take it, else the errors."""
    if errors := _project_errors(project, spec):
        return [], errors
    try:
        checked = Checked.resolve(project, spec, source)
    except BackendUnavailableError as error:
        code = SpecCode.UNSUPPORTED_BY_BACKEND
        return [], [_error(spec, "resources.infra", code, error.message)]
    problems = backend_problems(checked) or queue_problems(project, actor.user, checked)
    errors = [_error(spec, *problem) for problem in problems]
    return ([], errors) if errors else ([checked], [])


def _too_many_jobs(specs: Sequence[JobSpec | None]) -> list[dict[str, Any]]:
    count = sum(count_of(spec.portal.array) for spec in specs if spec is not None)
    if count <= MOST_JOBS:
        return []
    message = (
        f"Together these make {count:,} jobs; at most {MOST_JOBS:,} are taken at once. Submit them "
        "in several requests."
    )
    return [SpecError("", None, SpecCode.TOO_LARGE.value, message).to_dict()]


def _numbered(error: dict[str, Any], number: int, count: int) -> dict[str, Any]:
    return error if count == 1 else {**error, "document": number}


def _own_key(actor: Actor, key: str | None) -> str | None:
    """Return `key` as stored: a job's program gets back its own children, never other jobs."""
    if actor.driver is None or not key:
        return key
    # A further attempt that sends the same key gets the child that the first one submitted.
    return f"job {actor.driver.job_id} {hashlib.sha256(key.encode()).hexdigest()}"


def _body_digest(source: Source | list[Source]) -> str:
    text = source if isinstance(source, str) else json.dumps(source, sort_keys=True)
    # A client may send halves of characters; they are refused later, with a message.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def jobs_of_key(actor: Actor, project: Project, key: str, digest: str) -> list[Job]:
    """Return the jobs that the actor made with `key` in the last 24 hours, the first one first.

    IdempotencyConflictError: another body, of another `digest`, came with it.
    """
    fresh = clock.now() - IDEMPOTENCY_WINDOW
    mine = IdempotencyKey.objects.filter(user=actor.user, project=project, key=key)
    mine.filter(created_at__lt=fresh).delete()
    row = mine.select_related("job").first()
    if row is None:
        return []
    if row.body_digest != digest:
        raise IdempotencyConflictError(key=key)
    # Those that were deleted since are left out.
    others = Job.objects.in_bulk(row.job_ids) if row.job_ids else {}
    return [row.job, *(others[pk] for pk in row.job_ids if pk in others)]


def _may_use_admin_keys(actor: Actor) -> bool:
    """Whether keys that reach beyond the project are open; a token bound to one closes them."""
    return actor.is_installation_admin and actor.only_project_id is None


def _project_errors(project: Project, spec: JobSpec) -> list[dict[str, Any]]:
    errors = []
    named = spec.portal.project
    if named not in (None, project.slug) and not project.former_slugs.filter(pk=named).exists():
        message = f"The job names {spec.portal.project}, but it was sent to {project.slug}."
        errors.append(_error(spec, "portal.project", SpecCode.WRONG_PROJECT, message))
    wanted = spec.upload_keys()
    digests = [reference.removeprefix("upload:") for reference in wanted.values()]
    known = set(project.uploads.filter(digest__in=digests).values_list("digest", flat=True))
    for path, reference in wanted.items():
        if reference.removeprefix("upload:") not in known:
            message = f"Project {project.slug} has no {reference}; upload the folder first."
            errors.append(_error(spec, path, SpecCode.UNKNOWN_UPLOAD, message))
    for path, code, message in policy_problems(project, spec):
        errors.append(_error(spec, path, code, message))
    return errors + _unknown_secrets(project, spec)


def _unknown_secrets(project: Project, spec: JobSpec) -> list[dict[str, Any]]:
    names = ProjectSecret.objects.filter(project=project, name__in=spec.secrets.values())
    known = set(names.values_list("name", flat=True)) if spec.secrets else set()
    # What is meant as a name may be a value by mistake: it is not repeated.
    return [
        _error(
            spec,
            f"secrets.{variable}",
            SpecCode.UNKNOWN_SECRET,
            f"secrets.{variable} names a secret that project {project.slug} does not have. Set it "
            "first: `mportal secret set NAME`.",
        )
        for variable, name in spec.secrets.items()
        if name not in known
    ]


def _error(spec: JobSpec, path: str, code: SpecCode, message: str) -> dict[str, Any]:
    return spec.error_at(path, code, message).to_dict()
