"""The times of a schedule: a cron expression read on the clock of a time zone, as instants.

What a clock shows does not always come once. Where it is set forward, times do not come at all;
where it is set back, they come twice. Two rules, as cron on Debian has them:

- A schedule at certain hours (`30 2 * * *`) keeps its number of runs: a time that does not come
  runs at the moment the clock is set forward, one that comes twice runs the first time.
- A schedule of every hour, or of every so many minutes (`0 * * * *`, `*/15 9-17 * * *`), runs
  whenever the clock shows its time: as long a time passes between two runs as on any other day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim

from jobs.errors import ConflictError
from jobs.policies.cron_errors import problem_of

MOST_CHARACTERS = 100
FIELDS = 5
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

HOURS = 24
WEEKDAYS = 7
# The name of each field, the attribute with its values, and the unit that restarts them.
_FIELDS = (
    ("minute", "minutes", "hour"),
    ("hour", "hours", "day"),
    ("day of month", "days", "month"),
    ("month", "months", "year"),
    ("day of week", "weekdays", "week"),
)
# Number of values, for fields where a shorter last step is unintended. Months and weeks vary.
_EVEN = {"minute": 60, "hour": HOURS}

_ANY_TIME = datetime(2000, 1, 1)  # noqa: DTZ001 - of the calendar, in no zone
_SECOND, _MINUTE, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
_YEAR = 366 * _DAY
# Clocks are never set twice within it, nor by more.
_CALM = _DAY
# Two of them are further away from a wall time than any clock is ever set.
_FAR = 2 * _DAY


class ZoneGoneError(ConflictError):
    """The time zone is not known here any more: its name was taken out of the time zone data."""


@dataclass(frozen=True, slots=True)
class Timetable:
    """A cron expression and the name of a time zone, with which `complaints` finds nothing."""

    cron: str
    zone: str

    @classmethod
    def of(cls, cron: str, zone: str) -> Timetable:
        """Make a timetable with five fields, also if `cron` is a name for them."""
        return cls(in_full(cron), zone)

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first time after `moment`, which is aware; None: none in fifty years."""
        if _follows_the_clock(self.cron):
            return self._next_by_the_clock(moment)
        return self._next_of_the_day(moment)

    def last_in(self, after: datetime, until: datetime) -> datetime | None:
        """Return the last time later than `after` and not later than `until`; None: there is none.

        However many there are: their number is never counted.
        """
        found = self.next_after(after)
        if found is None or found > until:
            return None
        low, high = after, until  # a time follows on `low` that is not too late; none on `high`
        while high - low > _MINUTE:
            middle = low + (high - low) / 2
            later = self.next_after(middle)
            if later is None or later > until:
                high = middle
            else:
                low, found = middle, later
        # Within the minute that is left there is no other.
        return found

    def _next_of_the_day(self, moment: datetime) -> datetime | None:
        # What is not later on the clock was not later either, since the first time counts.
        for wall in CronSim(self.cron, _wall(moment, self._zone)):
            if (found := _first_time(wall, self._zone)) > moment:
                return found
        return None

    def _next_by_the_clock(self, moment: datetime) -> datetime | None:
        at = moment.astimezone(timezone.utc)
        while True:
            offset = _offset(at, self._zone)
            wall = next(CronSim(self.cron, (at + offset).replace(tzinfo=None)), None)
            if wall is None:
                return None
            # If the clock is not set before:
            found = wall.replace(tzinfo=timezone.utc) - offset
            end = min(found, at + _CALM)
            if _offset(end, self._zone) != offset:
                at = _when_set(at, end, self._zone)
                if self._shows(at):
                    return at
            elif end == found:
                return found
            else:
                # Nothing fits long before `found`, wherever the clock is set meanwhile.
                at = max(end, found - _FAR)

    def _shows(self, at: datetime) -> bool:
        """Whether the clock shows one of its times at this very moment."""
        wall = _wall(at, self._zone)
        return next(CronSim(self.cron, wall - _SECOND), None) == wall

    @property
    def _zone(self) -> ZoneInfo:
        return zone_named(self.zone)


def zone_named(name: str) -> ZoneInfo:
    """Return the zone. ZoneGoneError: it was known once; updates of the zone data remove names."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ZoneGoneError(
            f"The time zone {name} is not known here any more. Give the schedule another one, such "
            "as UTC or Europe/Berlin, or have an administrator bring the time zone data back."
        ) from error


def about_zone(name: str) -> str:
    """Describe what is wrong with the zone of an existing schedule; empty: nothing."""
    try:
        zone_named(name)
    except ZoneGoneError as error:
        return error.message
    return ""


def complaints(cron: str, zone: str) -> list[tuple[str, str]]:
    """List what is wrong with the two, as (field, sentence); empty: they make a timetable."""
    found = []
    if complaint := _about_cron(cron):
        found.append(("cron", complaint))
    if zone not in zones():
        known = "Give a name such as UTC or Europe/Berlin."
        found.append(("zone", f"There is no time zone {zone[:60]!r}. {known}"))
    return found


def remarks(cron: str) -> list[str]:
    """Return remarks about parts of a valid expression that are seldom intended."""
    fields = in_full(cron).split()
    found = [
        sentence
        for place, text in enumerate(fields)
        for part in text.split(",")
        if (sentence := _about_step(place, part))
    ]
    day, weekday = fields[2], fields[4]
    if not day.startswith("*") and not weekday.startswith("*"):
        found.append(
            f"Day of month ({day}) and day of week ({weekday}) are both given: it comes on every "
            "day that fits either of them. To have one alone, write * for the other."
        )
    times = CronSim(" ".join(fields), _ANY_TIME)
    first, second = next(times, None), next(times, None)
    if first and second and second - first > _YEAR:
        found.append(
            f"It does not come every year: {first:%Y-%m-%d} is followed by {second:%Y-%m-%d}."
        )
    return found


def without_uneven_steps(cron: str) -> str:
    """Return a valid expression with the values of steps whose last interval is shorter.

    Such a step, `*/7` of minutes, is not every seven minutes.
    """
    fields = in_full(cron).split()
    return " ".join(
        ",".join(
            ",".join(map(str, range(0, _EVEN[_FIELDS[position][0]], _step_of(part))))
            if _is_uneven(position, part)
            else part
            for part in text.split(",")
        )
        for position, text in enumerate(fields)
    )


def has_single_step(cron: str) -> bool:
    """Whether a step in a valid expression is so long that it fits one value of its field."""
    return any(
        "/" in part and _count_of(position, part) == 1
        for position, text in enumerate(in_full(cron).split())
        for part in text.split(",")
    )


def _count_of(position: int, part: str) -> int:
    """Count the values of a field that a part of it fits."""
    _, values, _ = _FIELDS[position]
    alone = CronSim(" ".join("*" if i != position else part for i in range(FIELDS)), _ANY_TIME)
    found = getattr(alone, values)
    return len({each % WEEKDAYS for each in found} if values == "weekdays" else found)


def _about_step(place: int, part: str) -> str:
    """Return a remark if the step in `part` of field `place` yields uneven intervals."""
    if "/" not in part:
        return ""
    name, _, period = _FIELDS[place]
    anew = f"steps begin anew with each {period}"
    if _count_of(place, part) == 1:
        return (
            f"{part} in the {name} field fits one {name} only: {anew}. For longer intervals, list "
            "the times one by one."
        )
    if _is_uneven(place, part):
        interval = f"every {_step_of(part)} {name}s"
        return f"{part} in the {name} field is not {interval}: {anew}, the last is short."
    return ""


def _is_uneven(position: int, part: str) -> bool:
    """Whether a step over all values of a field does not divide them."""
    period = _EVEN.get(_FIELDS[position][0], 0)
    return part.startswith("*/") and period % _step_of(part) != 0


def _step_of(part: str) -> int:
    return int(part.partition("/")[2])


@cache
def zones() -> frozenset[str]:
    """Return the names of all zones."""
    return frozenset(available_timezones())


@lru_cache(maxsize=1000)
def _follows_the_clock(cron: str) -> bool:
    """Whether it is one of every hour, or of every so many minutes."""
    minute, hour = cron.split()[:2]
    return minute.startswith("*") or len(CronSim(f"0 {hour} * * *", _ANY_TIME).hours) == HOURS


def in_full(cron: str) -> str:
    """Return an expression with its five fields, also if it is a name for them."""
    return " ".join(ALIASES.get(cron.strip().lower(), cron).split())


def _about_cron(cron: str) -> str:
    if len(cron) > MOST_CHARACTERS:
        return f"A cron expression has at most {MOST_CHARACTERS} characters."
    text = in_full(cron)
    if len(text.split()) != FIELDS:
        return (
            "A cron expression has five fields: minute, hour, day of month, month and day of week; "
            f"or it is one of {', '.join(ALIASES)}."
        )
    return problem_of(text, _ANY_TIME)


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    """Return what the clock shows then."""
    return moment.astimezone(zone).replace(tzinfo=None)


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None  # noqa: S101 - for the type checker: a zone always knows
    return offset


def _first_time(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return when the clock first shows `wall`; if never, when it is set forward over it."""
    at = wall.replace(tzinfo=zone, fold=0).astimezone(timezone.utc)
    if _wall(at, zone) == wall:
        return at
    return _when_set(at - _CALM, at, zone)


def _when_set(begin: datetime, end: datetime, zone: ZoneInfo) -> datetime:
    """Return the second at which the clock is set, once, after `begin` and not after `end`."""
    before = _offset(begin, zone)
    while end - begin > _SECOND:
        middle = begin + (end - begin) / 2
        if _offset(middle, zone) == before:
            begin = middle
        else:
            end = middle
    return end.replace(microsecond=0)
