"""Change the password of a user."""

from __future__ import annotations

from django.db import transaction

from jobs.actions.accounts.rights import check_rights_on_commit
from jobs.audit.record import record
from jobs.models import User
from jobs.permissions import Actor


def set_password(actor: Actor, password: str) -> None:
    """Set the actor's own password, which the caller has checked."""
    _set(actor, actor.user, password)


def set_password_of(user: User, password: str) -> None:
    """Set the password of `user` by a command on the portal's own host."""
    _set(None, user, password)


@transaction.atomic
def _set(actor: Actor | None, user: User, password: str) -> None:
    user.set_password(password)
    user.save(update_fields=["password"])
    record(actor, "set_password", user)
    # It ends the user's other browser sessions, whose streams end now.
    check_rights_on_commit(user.pk)
