"""Projects with their members and secrets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from msgspec import Meta

from monarch_client.wire.values import CHOICES, Moment

ProjectState: TypeAlias = Annotated[str, Meta(extra_json_schema={CHOICES: "ProjectState"})]
Role: TypeAlias = Annotated[str, Meta(extra_json_schema={CHOICES: "Role"})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project with the caller's role in it."""

    slug: str
    name: str
    role: str
    state: ProjectState = "active"
    archived_at: Moment | None = None
    laptops_may_attach: Annotated[
        bool, Meta(description="Whether laptops may attach to jobs that have a driver.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectDetail(Project):
    """A project with the number of its jobs by status."""

    job_counts: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a project."""

    username: str
    role: Role
    is_active: Annotated[bool, Meta(description="Whether the account may sign in.")] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectLimits:
    """The limits of a project's jobs and clusters. Null: no limit."""

    max_duration_s: Annotated[int | None, Meta(description="The project's own, of one run.")]
    max_idle_minutes: Annotated[
        int | None, Meta(description="The project's own, of an idle warm cluster.")
    ]
    duration_in_force_s: Annotated[
        int | None, Meta(description="The smaller one of the project's and the installation's.")
    ]
    idle_in_force_minutes: Annotated[
        int | None, Meta(description="The smaller one of the project's and the installation's.")
    ]
    weight: Annotated[float, Meta(description="The weight in fair sharing.")]
    may_set: Annotated[bool, Meta(description="Whether the caller may set these.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret of a project, without its value."""

    name: str
    created_at: Moment
    created_by: str
    updated_at: Moment
    updated_by: str
    is_masked: Annotated[bool, Meta(description="Long enough to be masked in logs.")]
