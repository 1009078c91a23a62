"""The members of a project."""

from __future__ import annotations

from jobs.models import Membership, Project
from jobs.permissions import Actor, Verb, require
from monarch_client.wire.projects import Member


def member_list(actor: Actor, project: Project) -> list[Member]:
    """List the members by user name."""
    require(actor, Verb.VIEW_PROJECT, project)
    memberships = project.memberships.select_related("user").order_by("user__username")
    return [member_view(row) for row in memberships]


def member_view(row: Membership) -> Member:
    """Return a membership as lists show it."""
    return Member(username=row.user.get_username(), role=row.role, is_active=row.user.is_active)
