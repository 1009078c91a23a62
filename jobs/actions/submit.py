"""Submitting a job: from text to a queued row, or every error at once."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction

from jobs import clock
from jobs.actions.check_policies import backend_of, backend_problems, policy_problems
from jobs.actions.history import record_action
from jobs.actions.hold import held_by
from jobs.backends import registry
from jobs.disk_space import require_room
from jobs.errors import IdempotencyConflictError, InvalidSpecError
from jobs.models import IdempotencyKey, Job, Project, ProjectSecret
from jobs.permissions import Actor, Verb, require
from jobs.wakeups import wake_on_commit
from monarch_client.runner.crash_points import reach
from monarch_client.spec import InvalidSpecErrors, JobSpec, SpecCode, SpecError

IDEMPOTENCY_WINDOW = timedelta(hours=24)

Source = str | dict[str, Any]


def submit_job(
    actor: Actor,
    project: Project,
    source: Source,
    *,
    idempotency_key: str | None = None,
) -> Job:
    """Check `source` and queue it as a job of `project`.

    With an `idempotency_key` (per user and project, 24 hours) the same body gives the same job
    again; IdempotencyConflictError when the body differs. InvalidSpecError carries every error in
    `data["errors"]`.
    """
    require(actor, Verb.SUBMIT_JOB, project)
    digest = _body_digest(source)
    if idempotency_key and (job := _job_of_key(actor, project, idempotency_key, digest)):
        return job
    require_room()
    spec = check_spec(actor, project, source)
    try:
        with transaction.atomic():
            job = create_job(actor, project, spec, source)
            if idempotency_key:
                IdempotencyKey.objects.create(
                    user=actor.user,
                    project=project,
                    key=idempotency_key,
                    body_digest=digest,
                    job=job,
                )
    except IntegrityError:
        # Another request with the same key committed first: its job is the answer.
        if idempotency_key and (job := _job_of_key(actor, project, idempotency_key, digest)):
            return job
        raise
    return job


def expect_job() -> None:
    """Begin with what checking a job takes seconds for, while it is being written."""
    registry.warm_up()


def check_spec(actor: Actor, project: Project, source: Source) -> JobSpec:
    """The parsed spec, checked against project and backend; stores nothing."""
    require(actor, Verb.SUBMIT_JOB, project)
    try:
        spec = JobSpec.parse(source, admin=_may_use_admin_keys(actor), for_server=True)
    except InvalidSpecErrors as error:
        raise InvalidSpecError(errors=[row.to_dict() for row in error.errors]) from error
    errors = _project_errors(project, spec)
    if not errors:
        errors += _backend_errors(project, spec)
    if errors:
        raise InvalidSpecError(errors=errors)
    return spec


def create_job(
    actor: Actor,
    project: Project,
    spec: JobSpec,
    source: Source,
    *,
    rerun_of: Job | None = None,
) -> Job:
    """The queued row with its first event; call it inside a transaction."""
    content = spec.to_dict()
    # Who runs a job again wants it to run.
    is_held = spec.portal.hold and rerun_of is None
    job = Job.objects.create(
        project=project,
        name=spec.name,
        kind=spec.kind,
        spec=content,
        spec_source=source if isinstance(source, str) else json.dumps(source, indent=2),
        num_nodes=spec.num_nodes,
        backend_name=backend_of(project, spec),
        queue_name=spec.portal.queue,
        priority=spec.portal.priority,
        submitted_by=actor.user,
        rerun_of=rerun_of,
        **(held_by(actor) if is_held else {}),
    )
    message = f"Rerun of job {rerun_of.pk}" if rerun_of else "Submitted"
    record_action(job, actor, "rerun" if rerun_of else "submit", message)
    transaction.on_commit(lambda: reach("submit.committed"))
    wake_on_commit("queue")
    reach("submit.stored")
    return job


def _body_digest(source: Source) -> str:
    text = source if isinstance(source, str) else json.dumps(source, sort_keys=True)
    # A client may send halves of characters; they are refused later, in words.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _job_of_key(actor: Actor, project: Project, key: str, digest: str) -> Job | None:
    fresh = clock.now() - IDEMPOTENCY_WINDOW
    mine = IdempotencyKey.objects.filter(user=actor.user, project=project, key=key)
    mine.filter(created_at__lt=fresh).delete()
    row = mine.select_related("job").first()
    if row is not None and row.body_digest != digest:
        raise IdempotencyConflictError(key=key)
    return row.job if row else None


def _may_use_admin_keys(actor: Actor) -> bool:
    """Whether keys that reach beyond the project are open; a token bound to one closes them."""
    bound = actor.token is not None and actor.token.project_id is not None
    return actor.is_installation_admin and not bound


def _project_errors(project: Project, spec: JobSpec) -> list[dict[str, Any]]:
    errors = []
    if spec.portal.project not in (None, project.slug):
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


def _backend_errors(project: Project, spec: JobSpec) -> list[dict[str, Any]]:
    problems = backend_problems(project, spec)
    return [_error(spec, path, code, message) for path, code, message in problems]


def _error(spec: JobSpec, path: str, code: SpecCode, message: str) -> dict[str, Any]:
    return SpecError(path, spec.line_of(path), code.value, message).to_dict()
