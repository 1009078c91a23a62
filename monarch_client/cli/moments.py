"""Points in time as options of commands: an ISO time, or a length of time before now."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from typing import Any

import click

from monarch_client.spec.durations import seconds_in


class Moment(click.ParamType):
    """A length of time before now, or a point in time; in the end an ISO time."""

    name = "TIME"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return the ISO time that `value` names."""
        try:
            seconds = seconds_in(value)
            if seconds is not None:
                return self.before_now(value, seconds)
            # A time without an offset is that of the clock on the wall.
            return datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone().isoformat()
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is neither a length such as 10m or 2h nor a time such as "
                "2026-03-01T12:00:00Z.",
                param,
                ctx,
            )

    def before_now(self, value: str, seconds: float) -> str:
        """Return the ISO time so many seconds before now; `value` is how it was written."""
        return (datetime.now(timezone.utc) - timedelta(seconds=seconds)).isoformat()


class MovingMoment(Moment):
    """A point in time as an ISO time; a length of time before now stays as it is, so it moves."""

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return the ISO time that `value` names, or its length; "" as it is."""
        return super().convert(value, param, ctx) if value else ""

    def before_now(self, value: str, seconds: float) -> str:
        """Return the length of time itself."""
        return value


def midnight(day: str, *, days_later: int = 0) -> str:
    """Return when an ISO day, or the one so many days later, begins on this machine's clock.

    "" if `day` names none: pages ignore such a text in an address as well.
    """
    try:
        begin = datetime.combine(date.fromisoformat(day) + timedelta(days=days_later), time())
        return begin.astimezone().isoformat()
    except (ValueError, OverflowError):
        return ""
