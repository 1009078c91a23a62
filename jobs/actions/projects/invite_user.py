"""Invite a new user into a project: the account, its one-time link, and the membership."""

from __future__ import annotations

from django.db import transaction

from jobs.actions.accounts.add_user import add_user_with_link
from jobs.actions.accounts.sign_in_links import Link
from jobs.actions.projects.members import set_role
from jobs.permissions import Actor, project_for
from jobs.statuses import Role


@transaction.atomic
def invite_user(
    actor: Actor, username: str, *, hours: int, project: str = "", role: Role = Role.MEMBER
) -> Link:
    """Create a user, as a member of `project` if one is named; return the link to sign in once.

    ConflictError: the name is taken or invalid. NotFoundError: there is no such project.
    """
    link = add_user_with_link(actor, username, hours=hours)
    if project:
        set_role(actor, project_for(actor, project), link.user.get_username(), role)
    return link
