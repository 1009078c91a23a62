"""The one decision whether an error means that the database is unavailable."""

from __future__ import annotations

from django.db import InterfaceError, InternalError, OperationalError

# PostgreSQL's codes for sessions that it ends because a transaction took too long. The driver
# reports them as internal errors.
_TRANSACTION_ENDED = frozenset({"25P03", "25P04"})


def is_database_away(error: BaseException) -> bool:
    """Whether the database was lost on the way, answered too late, or has no room: it will pass."""
    if isinstance(error, InternalError):
        return getattr(error.__cause__, "sqlstate", None) in _TRANSACTION_ENDED
    return isinstance(error, (OperationalError, InterfaceError))
