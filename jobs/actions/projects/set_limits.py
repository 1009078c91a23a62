"""The limits that an administrator of the installation sets for a project."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jobs.audit.record import record
from jobs.models import Project

_UNCHANGED: Any = object()


@transaction.atomic
def set_limits(
    project: Project,
    *,
    max_duration_s: int | None = _UNCHANGED,
    max_idle_minutes: int | None = _UNCHANGED,
) -> None:
    """Change a project's limits; None takes one away. They hold at once, also for what runs."""
    given = {"max_duration_s": max_duration_s, "max_idle_minutes": max_idle_minutes}
    changes = {name: value for name, value in given.items() if value is not _UNCHANGED}
    if not changes:
        return
    before = {name: getattr(project, name) for name in changes}
    for name, value in changes.items():
        setattr(project, name, value)
    project.save(update_fields=list(changes))
    record(None, "set_limits", project, before=before, after=changes)
