"""Explain what is wrong with the five fields of a cron expression, by field and part."""

from __future__ import annotations

from datetime import datetime

from cronsim import CronSim, CronSimError

# Of each field: its name, and its values.
_FIELDS = (
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of month", "1 to 31, or L for the last day"),
    ("month", "1 to 12, or JAN to DEC"),
    ("day of week", "0 (Sunday) to 6, or SUN to SAT"),
)
_FORMS = "lists (1,3), ranges (1-5) and steps (*/2)"
_MOST_SHOWN = 30


def problem_of(text: str, after: datetime) -> str:
    """Return what is wrong with five fields; empty if they have a time after `after`."""
    if _has_time(text, after):
        return ""
    fields = text.split()
    for position, field in enumerate(fields):
        if wrong := _wrong_part(position, field, after):
            name, values = _FIELDS[position]
            return (
                f"{text!r} is no cron expression: {wrong!r} does not fit the {name} field, which "
                f"takes {values}, with {_FORMS}."
            )
    day, month = fields[2], fields[3]
    return f"{text!r} never happens: day {day} does not exist in month {month}."


def _wrong_part(position: int, field: str, after: datetime) -> str:
    """Return the first part of a list that does not fit its field; empty if all fit."""
    for part in [*field.split(","), field]:
        alone = ["*"] * len(_FIELDS)
        alone[position] = part
        if not part or not _has_time(" ".join(alone), after):
            return (part or field)[:_MOST_SHOWN]
    return ""


def _has_time(text: str, after: datetime) -> bool:
    try:
        return next(CronSim(text, after), None) is not None
    except (CronSimError, AssertionError, ValueError):  # the last two: it was not thought of
        return False
