"""The projects somebody can see, with their role in each."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.permissions import Actor, projects_of, roles_of


@dataclass(frozen=True, slots=True)
class ProjectView:
    """A project as switchers and lists show it."""

    slug: str
    name: str
    role: str


def project_list(actor: Actor) -> list[ProjectView]:
    """By slug."""
    roles = roles_of(actor)
    return [
        ProjectView(project.slug, project.name, roles[project.pk].value)
        for project in projects_of(actor)
    ]
