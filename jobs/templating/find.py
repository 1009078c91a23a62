"""Find templates: those of the project first, then the installation's, then built-in ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jobs.errors import NotFoundError
from jobs.models import Project, TemplateVersion
from jobs.statuses import TemplateScope
from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec.templates import JobTemplate


@dataclass(frozen=True, slots=True)
class FoundTemplate:
    """A template with its scope. `row`: its stored version; None if it is built in.

    `problem`: why a version that an earlier release stored cannot be run; empty if it can.
    """

    scope: TemplateScope
    template: JobTemplate
    source: str
    row: TemplateVersion | None = None
    problem: str = ""

    @property
    def number(self) -> int:
        """The number of the version; built-in templates change with releases of the portal."""
        return self.row.number if self.row else 1


def templates_for(project: Project | None) -> list[FoundTemplate]:
    """Return the templates that `project` can use, by name; without a project the shared ones."""
    found = dict(built_in_templates())
    for scope, owner in reversed(_scopes(project)):
        rows = TemplateVersion.objects.of_scope(owner).newest().select_related("saved_by")
        found |= {row.name: _stored(scope, row) for row in rows}
    return [found[name] for name in sorted(found)]


def template_named(project: Project | None, name: str, number: int | None = None) -> FoundTemplate:
    """Return the template that `project` means by `name`: its newest version, or that `number`.

    NotFoundError: there is none.
    """
    for scope, owner in _scopes(project):
        rows = TemplateVersion.objects.of_scope(owner).filter(name=name).select_related("saved_by")
        if not rows.exists():
            continue
        row = rows.newest().first() if number is None else rows.filter(number=number).first()
        if row is None:
            raise NotFoundError(f"Template {name} has no version {number}.")
        return _stored(scope, row)
    built_in = built_in_templates().get(name)
    if built_in is None or number not in {None, 1}:
        where = f"in project {project.slug}" if project else "of all projects"
        raise NotFoundError(f"There is no template {name} {where}.")
    return built_in


def _scopes(project: Project | None) -> list[tuple[TemplateScope, Project | None]]:
    """Return the scopes of stored templates with their owners, the nearest first."""
    shared: list[tuple[TemplateScope, Project | None]] = [(TemplateScope.INSTALLATION, None)]
    return shared if project is None else [(TemplateScope.PROJECT, project), *shared]


def _stored(scope: TemplateScope, row: TemplateVersion) -> FoundTemplate:
    try:
        return FoundTemplate(scope, JobTemplate.read(row.source), row.source, row)
    except InvalidSpecErrors as error:
        # One such template must not hide all others.
        problem = error.errors[0].message
        about = f"This template cannot be run. {problem} Correct it and save it again."
        template = JobTemplate(row.name, row.name, about, (), row.source, 0)
        return FoundTemplate(scope, template, row.source, row, problem)


@cache
def built_in_templates() -> dict[str, FoundTemplate]:
    """Return the templates that come with the portal, by name."""
    folder = files("jobs.templating") / "shipped"
    texts = sorted(
        each.read_text(encoding="utf-8") for each in folder.iterdir() if each.name.endswith(".yaml")
    )
    found = [FoundTemplate(TemplateScope.BUILT_IN, JobTemplate.parse(text), text) for text in texts]
    return {each.template.name: each for each in found}
