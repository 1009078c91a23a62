"""Describe the meaning of a cron expression.

`cron-descriptor` describes each field; which days two restricted fields make is decided here, as
`cronsim` reads them: either field, unless one of the two begins with `*`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from cron_descriptor import ExpressionDescriptor, FormatError, Options
from cron_descriptor.Exception import MissingFieldError, WrongArgumentError

from jobs.policies.timetables import has_single_step, in_full, without_uneven_steps

# Of a day in a month, such as `5L` or `2#1`; months and weekdays have names with an L, too.
_POSITION = re.compile(r"#|\dL|\bLW?\b", re.IGNORECASE)
_LEADING_ZERO = re.compile(r"\b0(\d:\d\d [AP]M)")
_EVERY_DAYS = re.compile(r"\*/(\d+)")


@lru_cache(maxsize=1000)
def meaning_of(cron: str, *, has_half_days: bool = False) -> str:
    """Return the meaning of a valid expression; empty if the library has none for it.

    `has_half_days`: with hours as "2:30 PM", not "14:30".
    """
    fields = in_full(cron).split()
    # The library describes these falsely: "every 90 minutes", or two positions in a month as one.
    if has_single_step(cron) or any("," in each and _POSITION.search(each) for each in fields):
        return ""
    minute, hour, day, month, weekday = without_uneven_steps(cron).split()
    try:
        time = _time(minute, hour, has_half_days=has_half_days)
        months = _descriptor(f"0 0 1 {month} *").get_month_description()
        days = _days(day, weekday)
    except (FormatError, MissingFieldError, WrongArgumentError, ValueError, IndexError):
        return ""
    if not days and ":" in time and time.startswith("At ") and "past the hour" not in time:
        days = "every day"
    return ", ".join(filter(None, (time, days, _bare(months))))


def _days(day: str, weekday: str) -> str:
    of_month = _bare(_descriptor(f"0 0 {day} * *").get_day_of_month_description())
    if step := _EVERY_DAYS.fullmatch(day):
        of_month = f"every {step[1]} days from day 1 of the month"
    of_week = _bare(_descriptor(f"0 0 * * {weekday}").get_day_of_week_description())
    both = ", if also " if day.startswith("*") or weekday.startswith("*") else " or "
    return both.join(text for text, field in ((of_month, day), (of_week, weekday)) if field != "*")


def _bare(text: str) -> str:
    return text.removeprefix(", ").removeprefix("only ")


def _time(minute: str, hour: str, *, has_half_days: bool) -> str:
    text = _descriptor(f"{minute} {hour} * * *", has_half_days=has_half_days).get_full_description()
    # As pages write hours: "2:30 AM".
    return _LEADING_ZERO.sub(r"\1", text) if has_half_days else text


def _descriptor(cron: str, *, has_half_days: bool = False) -> ExpressionDescriptor:
    # Otherwise the environment of the server chooses the language and the hours.
    options = Options(locale_code="en_US", use_24hour_time_format=not has_half_days)
    return ExpressionDescriptor(cron, options)
