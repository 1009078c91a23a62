"""Whether an error means that the database is away: the one place that decides it."""

from __future__ import annotations

from django.db import InterfaceError, OperationalError


def is_database_away(error: BaseException) -> bool:
    """Whether the database was lost on the way, answered too late, or has no room: it will pass."""
    return isinstance(error, (OperationalError, InterfaceError))
