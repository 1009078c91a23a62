"""Disable and enable users, make them administrators of the installation, end their sessions."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jobs.actions.accounts.rights import check_rights_on_commit
from jobs.actions.accounts.sign_in_links import end_links
from jobs.audit.record import record
from jobs.errors import ConflictError, NotFoundError
from jobs.models import Installation, User, UserSession
from jobs.permissions import Actor, require_sessions, require_token_reach, require_users, user_for


@transaction.atomic
def change_user(
    actor: Actor, username: str, *, is_active: bool | None = None, is_admin: bool | None = None
) -> User:
    """Set whether a user may sign in, and administers the installation; None leaves it.

    A disabled user's sessions and links end at once, and their tokens are refused; their jobs
    continue. ConflictError: the installation would have no administrator. PermissionDeniedError:
    a token that expires makes an administrator.
    """
    require_users(actor, to_change=True)
    if is_admin:
        require_token_reach(actor)
    # Two administrators who disable each other at once would leave none: changes go one by one.
    Installation.current()
    Installation.objects.select_for_update(no_key=True).get(pk=1)
    user = User.objects.select_for_update(no_key=True).get(pk=user_for(username).pk)
    before = _terms(user)
    user.is_active = user.is_active if is_active is None else is_active
    user.is_superuser = user.is_superuser if is_admin is None else is_admin
    user.is_staff = user.is_superuser
    user.save(update_fields=["is_active", "is_superuser", "is_staff"])
    if not User.objects.filter(is_active=True, is_superuser=True).exists():
        raise ConflictError(
            f"{user} is the last administrator of this installation. Make another one first."
        )
    if not user.is_active:
        UserSession.objects.filter(user=user).delete()
        end_links(user)
    check_rights_on_commit(user.pk)
    record(actor, "change_user", user, before=before, after=_terms(user))
    return user


@transaction.atomic
def end_sessions(actor: Actor, username: str, session_id: str | None = None) -> int:
    """End one session of a user, or all of them; return how many ended.

    Users end their own sessions, administrators those of all users. NotFoundError: there is no
    session of that id.
    """
    user = user_for(username, actor)
    require_sessions(actor, user, to_change=True)
    rows = list(UserSession.objects.select_for_update().filter(user=user))
    ended = [row.pk for row in rows if session_id in {None, row.public_id}]
    if not ended and session_id is not None:
        raise NotFoundError(f"{user} has no session {session_id}.")
    UserSession.objects.filter(pk__in=ended).delete()
    check_rights_on_commit(user.pk)
    before, after = {"sessions": len(rows)}, {"sessions": len(rows) - len(ended)}
    record(actor, "end_sessions", user, before=before, after=after)
    return len(ended)


def _terms(user: User) -> dict[str, Any]:
    return {"is_active": user.is_active, "is_superuser": user.is_superuser}
