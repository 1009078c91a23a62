"""The members of a project."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.models import Membership, Project
from jobs.permissions import Actor, Verb, require


@dataclass(frozen=True, slots=True)
class MemberView:
    """One member; `role` is the stored value, such as "maintainer"."""

    username: str
    role: str
    is_active: bool


def member_list(actor: Actor, project: Project) -> list[MemberView]:
    """By user name."""
    require(actor, Verb.VIEW_PROJECT, project)
    memberships = project.memberships.select_related("user").order_by("user__username")
    return [member_view(row) for row in memberships]


def member_view(row: Membership) -> MemberView:
    """Return a membership as lists show it."""
    return MemberView(row.user.get_username(), row.role, row.user.is_active)
