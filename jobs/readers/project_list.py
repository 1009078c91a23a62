"""The projects that a user can see, with their role in each."""

from __future__ import annotations

from jobs.models import Project
from jobs.permissions import Actor, Verb, projects_of, require, require_sharing, role_in, roles_of
from jobs.readers.extended import extended
from jobs.readers.job_filter import status_counts
from jobs.statuses import ProjectState, Role
from monarch_client.wire import projects as wire
from monarch_client.wire.account import Me


def project_list(actor: Actor, state: ProjectState = ProjectState.ACTIVE) -> list[wire.Project]:
    """Return the projects in `state`, by slug; deleted ones only to administrators."""
    roles = roles_of(actor)
    return [_view(row, roles[row.pk]) for row in projects_of(actor).in_state(state)]


def project_view(actor: Actor, project: Project) -> wire.Project:
    """Return one project, whatever its state."""
    require(actor, Verb.VIEW_PROJECT, project)
    return _view(project, role_in(actor, project) or Role.VIEWER)


def project_detail(actor: Actor, project: Project) -> wire.ProjectDetail:
    """Return one project with the number of its jobs by status."""
    counts = status_counts(actor, project)
    return extended(wire.ProjectDetail, project_view(actor, project), job_counts=counts)


def project_weights(actor: Actor) -> dict[str, float]:
    """Return the weight of each project by slug. For administrators."""
    require_sharing(actor)
    return dict(projects_of(actor).values_list("slug", "share_weight"))


def me(actor: Actor) -> Me:
    """Return the actor with the projects that they see."""
    return Me(
        username=actor.user.get_username(),
        is_admin=actor.is_installation_admin,
        token=actor.token.name if actor.token else None,
        read_only=bool(actor.token and actor.token.read_only),
        time_zone=actor.user.time_zone,
        hour_format=actor.user.hour_format,
        projects=project_list(actor),
    )


def _view(project: Project, role: Role) -> wire.Project:
    return wire.Project(
        slug=project.slug,
        name=project.name,
        role=role.value,
        state=project.state.value,
        archived_at=project.archived_at,
        laptops_may_attach=project.laptops_may_attach,
    )
