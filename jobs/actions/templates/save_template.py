"""Save and delete templates, of a project or of the whole installation."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction

from jobs.actions.projects.keep_project import lock_project
from jobs.audit.record import record
from jobs.errors import ConflictError, InvalidSpecError, NotFoundError
from jobs.models import Project, TemplateVersion
from jobs.permissions import Actor, Verb, require, require_sharing
from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.spec.findings import SpecCode
from monarch_client.spec.templates import JobTemplate

MOST_TEMPLATES = 200  # of one project, and of the installation
MOST_VERSIONS = 50  # of one template; older ones are deleted


def save_template(
    actor: Actor, project: Project | None, source: str, *, name: str = ""
) -> TemplateVersion:
    """Store `source` as the next version of its template; an unchanged text makes no version.

    Without a project it is a template of all projects. `name`: the name that the header must have.
    InvalidSpecError carries every error in `data["errors"]`. ConflictError: there are too many.
    """
    _require(actor, project)
    source = source.replace("\r\n", "\n")
    template = parsed(source)
    if name and template.name != name:
        message = f"The header's name is {template.name}, not {name}."
        error = SpecError("name", None, SpecCode.CONFLICT.value, message)
        raise InvalidSpecError("The template has errors.", errors=[error.to_dict()])
    try:
        with transaction.atomic():
            return _store(actor, project, template.name, source)
    except IntegrityError as error:
        message = f"Template {template.name} was saved by another request. Try again."
        raise ConflictError(message) from error


def delete_template(actor: Actor, project: Project | None, name: str) -> None:
    """Delete all versions of a template; jobs that were made from it stay."""
    _require(actor, project)
    with transaction.atomic():
        rows = TemplateVersion.objects.of_scope(project).filter(name=name)
        newest = rows.newest().first()
        if newest is None:
            raise NotFoundError(f"There is no template {name} to delete here.")
        record(actor, "delete_template", newest, before={"version": newest.number})
        rows.delete()


def parsed(source: str) -> JobTemplate:
    """Return the checked template. InvalidSpecError: what is wrong with it."""
    try:
        return JobTemplate.parse(source)
    except InvalidSpecErrors as error:
        errors: list[dict[str, Any]] = [each.to_dict() for each in error.errors]
        raise InvalidSpecError("The template has errors.", errors=errors) from error


def _require(actor: Actor, project: Project | None) -> None:
    if project is None:
        require_sharing(actor)
    else:
        require(actor, Verb.MANAGE_TEMPLATES, project)


def _store(actor: Actor, project: Project | None, name: str, source: str) -> TemplateVersion:
    if project is not None:
        lock_project(project, Verb.MANAGE_TEMPLATES)
    all_rows = TemplateVersion.objects.of_scope(project)
    rows = all_rows.filter(name=name)
    newest = rows.newest().first()
    if newest is not None and newest.source == source:
        return newest
    if newest is None and all_rows.values("name").distinct().count() >= MOST_TEMPLATES:
        raise ConflictError(f"There are {MOST_TEMPLATES} templates already; delete one first.")
    row = TemplateVersion.objects.create(
        project=project,
        name=name,
        number=newest.number + 1 if newest else 1,
        source=source,
        saved_by=actor.user,
    )
    rows.filter(number__lte=row.number - MOST_VERSIONS).delete()
    before = {"version": newest.number} if newest else None
    record(actor, "save_template", row, before=before, after={"version": row.number})
    return row
