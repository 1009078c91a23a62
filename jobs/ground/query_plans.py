"""The plans of the database's statements: shared by all values, or made for the values at hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def planned_for_values() -> Iterator[None]:
    """Make the database plan each statement of the block for its own values.

    A prepared statement soon has one plan for all values, which reads a whole table where a value
    is rare. A plan costs a few milliseconds: this is for filters that readers choose, not for the
    statements that every job needs.
    """
    connection.ensure_connection()
    session = connection.connection
    threshold = session.prepare_threshold
    # Without a name a statement is planned when its values are known.
    session.prepare_threshold = None
    try:
        yield
    finally:
        session.prepare_threshold = threshold
