"""The limits that an administrator of the installation sets for a project."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jobs.actions.sharing.queue_input import Reading
from jobs.audit.record import record
from jobs.models import Project
from jobs.permissions import Actor, require_sharing

_UNCHANGED: Any = object()
MOST_S, MOST_MINUTES = 366 * 86_400, 366 * 1440


@transaction.atomic
def set_limits(
    actor: Actor | None,
    project: Project,
    *,
    max_duration_s: int | None = _UNCHANGED,
    max_idle_minutes: int | None = _UNCHANGED,
) -> None:
    """Change a project's limits; None takes one away. They hold at once, also for what runs.

    No `actor`: a command on the portal's own host. InvalidSettingsError for a bad value.
    """
    if actor is not None:
        require_sharing(actor)
    given = {"max_duration_s": max_duration_s, "max_idle_minutes": max_idle_minutes}
    changes = {name: value for name, value in given.items() if value is not _UNCHANGED}
    if not changes:
        return
    _require_good(changes)
    before = {name: getattr(project, name) for name in changes}
    for name, value in changes.items():
        setattr(project, name, value)
    project.save(update_fields=list(changes))
    record(actor, "set_limits", project, before=before, after=changes)


def _require_good(changes: dict[str, int | None]) -> None:
    reading = Reading()
    most = {"max_duration_s": MOST_S, "max_idle_minutes": MOST_MINUTES}
    for name, value in changes.items():
        if value is not None:
            reading.whole(name, value, 1, most[name])
    reading.require_none()
