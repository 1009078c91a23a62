"""What an administrator of the installation allows a project at most."""

from __future__ import annotations

from typing import Any

from jobs.models import Project

_UNCHANGED: Any = object()


def set_limits(
    project: Project,
    *,
    max_duration_s: int | None = _UNCHANGED,
    max_idle_minutes: int | None = _UNCHANGED,
) -> None:
    """Change a project's limits; None takes one away. They hold at once, also for what runs."""
    given = {"max_duration_s": max_duration_s, "max_idle_minutes": max_idle_minutes}
    changes = {name: value for name, value in given.items() if value is not _UNCHANGED}
    for name, value in changes.items():
        setattr(project, name, value)
    if changes:
        project.save(update_fields=list(changes))
