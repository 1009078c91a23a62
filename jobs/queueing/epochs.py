"""Times as numbers, for queries with so many rows that datetimes would take too long."""

from __future__ import annotations

from django.db.models import Field, Func


def epoch_s(column: str) -> Func:
    """Return an expression: `column` in seconds since the epoch, or NULL."""
    # A field of no type: what the database gives is a float, and need not be made one once more.
    return Func(
        column, template="EXTRACT(EPOCH FROM %(expressions)s)::float8", output_field=Field()
    )
