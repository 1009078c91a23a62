"""The projects somebody can see, with their role in each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobs.models import Project
from jobs.permissions import Actor, Verb, projects_of, require, role_in, roles_of
from jobs.statuses import ProjectState, Role


@dataclass(frozen=True, slots=True)
class ProjectView:
    """A project as switchers and lists show it; `state` is the stored value, such as "active"."""

    slug: str
    name: str
    role: str
    state: str
    archived_at: datetime | None


def project_list(actor: Actor, state: ProjectState = ProjectState.ACTIVE) -> list[ProjectView]:
    """Return the projects in `state`, by slug; deleted ones only to administrators."""
    roles = roles_of(actor)
    return [_view(row, roles[row.pk]) for row in projects_of(actor).in_state(state)]


def project_view(actor: Actor, project: Project) -> ProjectView:
    """Return one project, whatever its state."""
    require(actor, Verb.VIEW_PROJECT, project)
    return _view(project, role_in(actor, project) or Role.VIEWER)


def _view(project: Project, role: Role) -> ProjectView:
    return ProjectView(
        slug=project.slug,
        name=project.name,
        role=role.value,
        state=project.state.value,
        archived_at=project.archived_at,
    )
