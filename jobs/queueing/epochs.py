"""Moments as numbers, where so many are read that datetimes would take longer than all else."""

from __future__ import annotations

from django.db.models import Field, Func


def epoch_s(column: str) -> Func:
    """`column` in seconds since the epoch, NULL where it is."""
    # A field of no type: what the database gives is a float, and need not be made one once more.
    return Func(
        column, template="EXTRACT(EPOCH FROM %(expressions)s)::float8", output_field=Field()
    )
