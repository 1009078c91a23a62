"""The templates that a project can use."""

from __future__ import annotations

from jobs.models import Project, TemplateVersion
from jobs.permissions import (
    Actor,
    Verb,
    may,
    may_change_installation,
    require,
)
from jobs.readers.extended import extended
from jobs.statuses import TemplateScope
from jobs.templating.find import FoundTemplate, template_named, templates_for
from monarch_client.wire import templates as wire


def template_list(actor: Actor, project: Project | None) -> list[wire.Template]:
    """List the templates by name; without a project those of all projects."""
    _require(actor, project)
    scopes = _managed(actor, project)
    return [_view(found, scopes) for found in templates_for(project)]


def template_page(
    actor: Actor, project: Project | None, name: str, number: int | None = None
) -> wire.TemplateDetail:
    """Return one template with its text, parameters and versions. NotFoundError: there is none."""
    _require(actor, project)
    found = template_named(project, name, number)
    return extended(
        wire.TemplateDetail,
        _view(found, _managed(actor, project)),
        source=found.source,
        parameters=found.template.schema(),
        versions=_versions(found),
    )


def found_template(
    actor: Actor, project: Project, name: str, number: int | None = None
) -> FoundTemplate:
    """Return the template to fill in. NotFoundError: there is none."""
    _require(actor, project)
    return template_named(project, name, number)


def _require(actor: Actor, project: Project | None) -> None:
    if project is not None:
        require(actor, Verb.VIEW_PROJECT, project)


def _managed(actor: Actor, project: Project | None) -> set[TemplateScope]:
    """Return the scopes whose templates the actor may save and delete."""
    scopes = {TemplateScope.INSTALLATION} if may_change_installation(actor) else set()
    if project is not None and may(actor, Verb.MANAGE_TEMPLATES, project):
        scopes.add(TemplateScope.PROJECT)
    return scopes


def _view(found: FoundTemplate, managed: set[TemplateScope]) -> wire.Template:
    row = found.row
    return wire.Template(
        name=found.template.name,
        scope=found.scope.value,
        title=found.template.title,
        about=found.template.about,
        version=found.number,
        saved_by=_saver(row) if row else "",
        saved_at=row.saved_at if row else None,
        can_manage=found.scope in managed,
    )


def _versions(found: FoundTemplate) -> list[wire.TemplateVersion]:
    if found.row is None:
        return []
    rows = TemplateVersion.objects.of_scope(found.row.project).filter(name=found.row.name)
    return [
        wire.TemplateVersion(version=row.number, saved_by=_saver(row), saved_at=row.saved_at)
        for row in rows.select_related("saved_by").order_by("-number")
    ]


def _saver(row: TemplateVersion) -> str:
    return row.saved_by.get_username() if row.saved_by else ""
