"""Set how pages show times to a user: in which time zone, and with 12 or 24 hours."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jobs.audit.record import record
from jobs.errors import InvalidZoneError, PermissionDeniedError
from jobs.models import User
from jobs.permissions import Actor
from jobs.policies.timetables import zones
from jobs.statuses import HourFormat


@transaction.atomic
def set_time_format(
    actor: Actor, *, time_zone: str | None = None, hour_format: str | None = None
) -> User:
    """Set the actor's own time zone and hours; "" is automatic, None leaves it.

    InvalidZoneError: there is no such zone. PermissionDeniedError: a token that is limited to
    reading or to a project.
    """
    if actor.only_project_id is not None or (actor.token and actor.token.read_only):
        raise PermissionDeniedError("This token may not change the account; sign in instead.")
    if time_zone and time_zone not in zones():
        raise InvalidZoneError(
            f"There is no time zone {time_zone[:60]!r}. Give a name such as Europe/Berlin."
        )
    user = User.objects.select_for_update(no_key=True).get(pk=actor.user.pk)
    before = _terms(user)
    user.time_zone = user.time_zone if time_zone is None else time_zone
    user.hour_format = user.hour_format if hour_format is None else HourFormat(hour_format).value
    user.save(update_fields=["time_zone", "hour_format"])
    record(actor, "set_time_format", user, before=before, after=_terms(user))
    return user


def _terms(user: User) -> dict[str, Any]:
    return {"time_zone": user.time_zone, "hour_format": user.hour_format}
