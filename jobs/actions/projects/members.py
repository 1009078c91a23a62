"""The members of a project and their roles."""

from __future__ import annotations

from django.db import transaction

from jobs.actions.accounts.rights import check_rights_on_commit
from jobs.actions.projects.keep_project import lock_project
from jobs.audit.record import record
from jobs.errors import ConflictError, NotFoundError
from jobs.models import Membership, Project, User
from jobs.permissions import Actor, Verb, require
from jobs.statuses import Role


@transaction.atomic
def set_role(actor: Actor, project: Project, username: str, role: Role) -> Membership:
    """Make `username` a member with `role`, or change the role they have."""
    _lock(actor, project)
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise NotFoundError(f"There is no active user {username}.")
    if role != Role.ADMIN:
        _refuse_losing_last_admin(project, user)
    was = Membership.objects.filter(project=project, user=user).first()
    membership, _ = Membership.objects.update_or_create(
        project=project, user=user, defaults={"role": role}
    )
    before = {"role": was.role} if was else None
    check_rights_on_commit(user.pk)
    record(actor, "set_role", membership, before=before, after={"role": role})
    return membership


@transaction.atomic
def remove_member(actor: Actor, project: Project, username: str) -> None:
    """End a membership. NotFoundError when there is none."""
    _lock(actor, project)
    membership = Membership.objects.filter(project=project, user__username=username).first()
    if membership is None:
        raise NotFoundError(f"{username} is not a member of {project.slug}.")
    _refuse_losing_last_admin(project, membership.user)
    record(actor, "remove_member", membership, before={"role": membership.role})
    membership.delete()
    check_rights_on_commit(membership.user_id)


def _lock(actor: Actor, project: Project) -> None:
    require(actor, Verb.MANAGE_MEMBERS, project)
    # Two admins who demote each other at once would leave none: changes go one by one.
    lock_project(project, Verb.MANAGE_MEMBERS)


def _refuse_losing_last_admin(project: Project, user: User) -> None:
    # An admin who may not sign in does not count.
    admins = Membership.objects.filter(project=project, role=Role.ADMIN, user__is_active=True)
    if admins.filter(user=user).exists() and admins.count() == 1:
        raise ConflictError(f"{user} is the last admin of {project.slug}; name another one first.")
