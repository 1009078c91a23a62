"""Change the password of a user."""

from __future__ import annotations

from django.db import transaction

from jobs.audit.record import record
from jobs.permissions import Actor


@transaction.atomic
def set_password(actor: Actor, password: str) -> None:
    """Set the actor's own password, which the caller has checked."""
    actor.user.set_password(password)
    actor.user.save(update_fields=["password"])
    record(actor, "set_password", actor.user)
