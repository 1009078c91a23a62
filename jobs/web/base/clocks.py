"""Format times for pages, in a person's time zone and hours: the one place of these formats.

`js/clock.js` has the same formats for what the browser counts on and draws: change both.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from jobs.ground.clock import now
from jobs.models import User
from jobs.statuses import HourFormat
from jobs.web.base.figures import span

# The browser's own zone and hours, as clock.js stores them: "Europe/Berlin:24".
COOKIE = "clock"
UTC = "UTC"
# A moment nearer than this is shown without its day.
_NEAR = timedelta(hours=12)
_NOON = 12
_JUST_NOW, _MINUTE, _HOUR, _DAY = 10, 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock in a time zone, with 12 or 24 hours."""

    zone: str = UTC
    has_half_days: bool = False

    def when(self, moment: datetime) -> str:
        """Format a moment: "14:03:05", or "Nov 27, 14:03:05" if it is not near."""
        local = self._local(moment)
        if abs(now() - moment) < _NEAR:
            return self._time(local, seconds=True)
        return f"{self._day(local)}, {self._time(local, seconds=True)}"

    def slot(self, moment: datetime) -> str:
        """Format a planned moment: "Fri, Nov 27, 14:03"."""
        local = self._local(moment)
        return f"{local:%a}, {self._day(local)}, {self._time(local)}"

    def day(self, moment: datetime) -> str:
        """Format a moment's day: "Nov 27, 2026"."""
        return self._day(self._local(moment), year=True)

    def title(self, moment: datetime) -> str:
        """Format a moment in full, for a tooltip: in the zone, and in UTC."""
        utc = f"{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
        if self.zone == UTC:
            return utc
        local = self._local(moment)
        day, time = self._day(local, year=True), self._time(local, seconds=True)
        return f"{day}, {time} {self.zone} · {utc}"

    def _local(self, moment: datetime) -> datetime:
        return moment.astimezone(ZoneInfo(self.zone))

    def _time(self, local: datetime, *, seconds: bool = False) -> str:
        rest = f"{local:%M:%S}" if seconds else f"{local:%M}"
        offset = _offset_if_twice(local)
        if not self.has_half_days:
            return f"{local:%H}:{rest}{offset}"
        half = "PM" if local.hour >= _NOON else "AM"
        return f"{local.hour % _NOON or _NOON}:{rest} {half}{offset}"

    def _day(self, local: datetime, *, year: bool = False) -> str:
        day = f"{local:%b} {local.day}"
        return f"{day}, {local.year}" if year or local.year != self._local(now()).year else day


def _offset_if_twice(local: datetime) -> str:
    """Return " UTC+2" for a time that comes twice, as clocks are set back; "" for any other."""
    offset = local.utcoffset()
    others = {local.replace(fold=fold).utcoffset() for fold in (0, 1)}
    if offset is None or len(others) == 1:
        return ""
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    sign = "-" if offset < timedelta() else "+"
    return f" UTC{sign}{hours}{f':{minutes:02}' if minutes else ''}" if offset else " UTC"


def clock_of(request: Any) -> Clock:
    """Return the clock of a request's user; without a request that of UTC.

    What the user left to their browser is in its cookie from its second page on. Parts that are
    rendered once for several readers have no request: their pages' script sets the times.
    """
    if request is None:
        return Clock()
    known: Clock | None = getattr(request, "clock", None)
    if known is None:
        request.clock = known = _read(request)
    return known


def _read(request: Any) -> Clock:
    user = getattr(request, "user", None)
    zone, hours = (user.time_zone, user.hour_format) if isinstance(user, User) else ("", "")
    own_zone, _, own_hours = request.COOKIES.get(COOKIE, "").partition(":")
    return Clock(
        next((name for name in (zone, own_zone) if name and is_zone(name)), UTC),
        (hours or own_hours) == HourFormat.HALF_DAY,
    )


def is_zone(name: str) -> bool:
    """Whether this machine's time zone data has the zone; updates of the data remove names."""
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return False
    return True


def words_ago(seconds: float) -> str:
    """Format an age: "just now", "5 min ago", "3 h ago", "12 days ago"."""
    if seconds < _JUST_NOW:
        return "just now"
    for size, word in ((_DAY, "day"), (_HOUR, "h"), (_MINUTE, "min"), (1, "s")):
        count = int(seconds // size)
        if count:
            plural = "s" if word == "day" and count > 1 else ""
            return f"{count} {word}{plural} ago"
    return "just now"


def words_until(seconds: float) -> str:
    """Format the time to a future moment: "any moment", "in 5 min"."""
    return "any moment" if seconds < 1 else f"in {span(seconds)}"
