"""The due times of schedules, on ordinary days and on those on which clocks are set."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jobs.policies.timetables import ALIASES, Timetable, complaints, remarks
from tests.each_case import check_each

UTC = timezone.utc
# Forward and back by an hour, in both halves of the world; by half an hour; over midnight; in
# the other direction in winter; and never.
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Beirut",
    "Europe/Dublin",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "UTC",
)
AT_CERTAIN_HOURS = (
    "30 2 * * *",
    "0 0 * * *",
    "15,45 1-3 * * *",
    "5 */2 * * *",
    "0 3 * * 0",
    "59 23 L * *",
    "0 2 29 2 *",
)
BY_THE_CLOCK = ("* * * * *", "*/15 * * * *", "0 * * * *", "*/20 2 * * *", "7 0-23 * * 0")
_FIRST, _LAST = datetime(2024, 1, 1), datetime(2028, 1, 1)  # noqa: DTZ001 - the strategy adds it
moments = st.datetimes(_FIRST, _LAST, timezones=st.just(UTC))
zones = st.sampled_from(ZONES)
crons = st.sampled_from(AT_CERTAIN_HOURS + BY_THE_CLOCK)


def local(zone: str, *parts: int, fold: int = 0) -> datetime:
    return datetime(*parts, tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)


def runs(cron: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    """List every time later than `begin` and not later than `end`."""
    table, found = Timetable.of(cron, zone), []
    at = table.next_after(begin)
    while at is not None and at <= end:
        found.append(at)
        at = table.next_after(at)
    return found


def on(cron: str, zone: str, year: int, month: int, day: int) -> list[str]:
    """List the times of one local day, as the clock shows them, with the offset from UTC."""
    begin = local(zone, year, month, day) - timedelta(seconds=1)
    end = begin + timedelta(hours=26)
    shown = [at.astimezone(ZoneInfo(zone)) for at in runs(cron, zone, begin, end)]
    return [f"{at:%H:%M%z}" for at in shown if at.day == day]


@pytest.mark.feature("P9.2")
@pytest.mark.parametrize(
    ("zone", "day", "cron", "shown"),
    [
        ("Europe/Berlin", (2026, 3, 29), "30 2 * * *", ["03:00+0200"]),
        ("Europe/Berlin", (2026, 3, 29), "15,45 2 * * *", ["03:00+0200"]),
        ("Europe/Berlin", (2026, 3, 29), "0 2,3 * * *", ["03:00+0200"]),
        ("Europe/Berlin", (2026, 3, 29), "30 1 * * *", ["01:30+0100"]),
        ("America/New_York", (2026, 3, 8), "30 2 * * *", ["03:00-0400"]),
        ("Australia/Lord_Howe", (2026, 10, 4), "10 2 * * *", ["02:30+1100"]),
        ("America/Santiago", (2026, 9, 6), "0 0 * * *", ["01:00-0300"]),
        ("America/Santiago", (2026, 9, 6), "0 */6 * * *",
         ["01:00-0300", "06:00-0300", "12:00-0300", "18:00-0300"]),
    ],
)  # fmt: skip
def test_a_time_that_does_not_come_runs_once_when_the_clock_is_set_forward(zone, day, cron, shown):
    assert on(cron, zone, *day) == shown


@pytest.mark.feature("P9.2")
@pytest.mark.parametrize(
    ("zone", "day", "cron", "shown"),
    [
        ("Europe/Berlin", (2026, 10, 25), "30 2 * * *", ["02:30+0200"]),
        ("Europe/Berlin", (2026, 10, 25), "0 1-4 * * *",
         ["01:00+0200", "02:00+0200", "03:00+0100", "04:00+0100"]),
        ("America/New_York", (2026, 11, 1), "30 1 * * *", ["01:30-0400"]),
        ("Australia/Lord_Howe", (2026, 4, 5), "45 1 * * *", ["01:45+1100"]),
    ],
)  # fmt: skip
def test_a_time_that_comes_twice_runs_the_first_time(zone, day, cron, shown):
    assert on(cron, zone, *day) == shown


def clock_settings(zone: str) -> list[datetime]:
    """Return when the zone's clocks are set in 2026, to the hour; the first of January if never."""
    hours = [local("UTC", 2026, 1, 1) + timedelta(hours=n) for n in range(365 * 24)]
    offsets = [at.astimezone(ZoneInfo(zone)).utcoffset() for at in hours]
    pairs = zip(hours[1:], itertools.pairwise(offsets), strict=True)
    return [at for at, (before, after) in pairs if before != after] or hours[:1]


@pytest.mark.feature("P9.2")
@pytest.mark.parametrize(("cron", "minutes"), [("*/15 * * * *", 15), ("* * * * *", 1)])
def test_every_so_many_minutes_are_so_many_minutes_on_days_on_which_clocks_are_set(cron, minutes):
    def check(zone: str, moment: datetime) -> None:
        begin, step = moment - timedelta(days=1), timedelta(minutes=minutes)
        wanted = [begin + step * (n + 1) for n in range(2 * 24 * 60 // minutes)]
        found = runs(cron, zone, begin, begin + timedelta(days=2))
        assert found == wanted, [str(at) for at in sorted({*found} ^ {*wanted})[:3]]

    check_each([(zone, at) for zone in ZONES for at in clock_settings(zone)], check)


@pytest.mark.feature("P9.2")
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "America/Santiago"])
def test_every_hour_is_every_hour_on_days_on_which_clocks_are_set(zone):
    at = local(zone, 2026, 1, 1)
    found = runs("@hourly", zone, at, at + timedelta(days=365))
    assert found == [at + timedelta(hours=n + 1) for n in range(365 * 24)]


@pytest.mark.feature("P9.2")
@settings(deadline=None, max_examples=50)
@given(crons, zones, moments)
def test_times_only_ever_go_forward_and_are_whole_minutes(cron, zone, moment):
    table, at = Timetable.of(cron, zone), moment
    for _ in range(20):
        later = table.next_after(at)
        assert later is not None and later > at
        assert (later.second, later.microsecond, later.tzinfo) == (0, 0, UTC)
        # From wherever one asks, the same time is next.
        assert table.next_after(at + (later - at) / 2) == later
        at = later


@pytest.mark.feature("P9.2")
@settings(deadline=None, max_examples=50)
@given(st.sampled_from(AT_CERTAIN_HOURS[:-1]), zones, moments)
def test_at_certain_hours_every_time_of_the_calendar_runs_once_and_none_is_lost(cron, zone, moment):
    begin = moment.replace(hour=0)
    found = runs(cron, zone, begin, begin + timedelta(days=40))
    shown = [at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for at in found]
    assert len(set(shown)) == len(shown)
    assume(len(found) > 1)
    wanted = []
    for wall in CronSim(cron, shown[0]):
        if wall > shown[-1]:
            break
        wanted.append(wall)
    # What the calendar has and the clock did not show has run when the clock was set.
    set_forward = {wall for wall in wanted if not is_shown(wall, zone)}
    assert set(wanted) - set_forward <= set(shown)
    extra = set(shown[1:]) - set(wanted)
    assert len(extra) <= len(set_forward)
    assert all(not is_shown(at - timedelta(minutes=1), zone) for at in extra)


@pytest.mark.feature("P9.2")
@settings(deadline=None, max_examples=50)
@given(st.sampled_from(BY_THE_CLOCK), zones, moments)
def test_by_the_clock_it_runs_whenever_the_clock_shows_it_and_never_else(cron, zone, moment):
    begin = moment.replace(second=0, microsecond=0)
    end = begin + timedelta(hours=30)
    every = [begin + timedelta(minutes=n + 1) for n in range(30 * 60)]
    shown = [at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for at in every]
    calendar = calendar_times(cron, min(shown), max(shown))
    fits = [at for at, wall in zip(every, shown, strict=True) if wall in calendar]
    assert runs(cron, zone, begin, end) == fits


@settings(deadline=None, max_examples=50)
@given(crons, zones, moments, st.timedeltas(timedelta(0), timedelta(days=3)))
def test_the_last_time_is_the_last_of_all_that_came(cron, zone, moment, length):
    every = runs(cron, zone, moment, moment + length)
    last = Timetable.of(cron, zone).last_in(moment, moment + length)
    assert last == (every[-1] if every else None)


def test_the_last_of_very_many_times_is_found_at_once():
    begin, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2046, 1, 1, 0, 0, 30, tzinfo=UTC)
    assert Timetable.of("* * * * *", "UTC").last_in(begin, end) == end.replace(second=0)


def test_a_day_that_comes_every_four_years_is_found():
    at = Timetable.of("*/5 * 29 2 *", "Europe/Berlin").next_after(local("UTC", 2025, 1, 1))
    assert at == local("Europe/Berlin", 2028, 2, 29)


def test_a_name_stands_for_its_fields():
    moment = local("UTC", 2026, 3, 3)

    def check(alias: str) -> None:
        assert complaints(alias.upper(), "UTC") == []
        named, written = Timetable.of(alias, "UTC"), Timetable.of(ALIASES[alias], "UTC")
        assert named.next_after(moment) == written.next_after(moment)

    check_each(ALIASES, check)


NO_CRONS = [
    "", "* * * *", "* * * * * *", "61 * * * *", "@reboot", "x * * * *", "* * * * L/2",
    "0 0 30 2 *", "* * */20 * 1L", "*/0 * * * *", "²L * * * *", "1#6 * * * *", "* * * * 1L/2",
    "9" * 101, "0 0 \0 * *",
]  # fmt: skip


def test_what_is_no_cron_expression_is_reported():
    def check(cron: str) -> None:
        ((field, sentence),) = complaints(cron, "UTC")
        assert field == "cron"
        assert sentence.endswith(".")

    check_each(NO_CRONS, check)


def test_an_error_names_the_field_and_the_part_that_does_not_fit():
    def check(cron: str, words: str) -> None:
        ((field, sentence),) = complaints(cron, "UTC")
        assert field == "cron"
        assert words in sentence

    check_each(
        [
            ("61 * * * *", "'61' does not fit the minute field, which takes 0 to 59"),
            ("0 9,24 * * *", "'24' does not fit the hour field, which takes 0 to 23"),
            ("0 0 0 * *", "'0' does not fit the day of month field"),
            ("0 0 1 FOO *", "'FOO' does not fit the month field"),
            ("0 0 * * 8", "'8' does not fit the day of week field"),
            ("0 3 31 2 *", "never happens: day 31 does not exist in month 2"),
            ("0 0 31 4,6 *", "never happens: day 31 does not exist in month 4,6"),
        ],
        check,
    )


def test_an_expression_that_is_seldom_meant_gets_a_remark():
    def check(cron: str, words: str) -> None:
        assert complaints(cron, "UTC") == []
        assert words in " ".join(remarks(cron))

    check_each(
        [
            ("*/90 * * * *", "*/90 in the minute field"),
            ("0-59/90 * * * *", "0-59/90 in the minute field fits one minute only"),
            ("15,5/90 * * * *", "5/90 in the minute field fits one minute only"),
            ("*/45 * * * *", "*/45 in the minute field is not every 45 minutes"),
            ("0 */24 * * *", "*/24 in the hour field fits one hour only"),
            ("0 0 * * */7", "*/7 in the day of week field fits one day of week only"),
            ("0 0 1 JAN/12 *", "JAN/12 in the month field fits one month only"),
            ("0 0 29 2 1", "Day of month (29) and day of week (1)"),
            ("0 0 29 2 *", "It does not come every year: 2000-02-29"),
        ],
        check,
    )


def test_usual_expressions_get_no_remark():
    usual = [*ALIASES, "*/30 * * * *", "30 2 * * 1-5", "0 */12 1,15 * *", "0 0 1 1 *", "0 0 31 * *"]
    usual += ["5/20 8-18/2 * * *", "0 0 */2 * *", "0 0 * * 1-5/2"]
    assert [cron for cron in usual if remarks(cron)] == []


def test_what_is_no_zone_is_reported():
    def check(zone: str) -> None:
        ((field, sentence),) = complaints("@daily", zone)
        assert field == "zone"
        assert len(sentence) < 200

    check_each(["", "Berlin", "../../etc/passwd", "CET ", "\0", "x" * 500], check)


@settings(deadline=None, max_examples=50)
@given(
    st.text(max_size=30)
    | st.lists(st.text("0123456789*/,-#L", max_size=6), min_size=5, max_size=5).map(" ".join)
)
def test_no_text_breaks_the_reading(text):
    if complaints(text, "UTC") == []:
        assert Timetable.of(text, "UTC").next_after(local("UTC", 2026, 1, 1)) is not None
        assert all(sentence.endswith(".") for sentence in remarks(text))


def is_shown(wall: datetime, zone: str) -> bool:
    """Whether the clock ever shows it."""
    at = wall.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    return at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == wall


def calendar_times(cron: str, first: datetime, last: datetime) -> set[datetime]:
    """Return the matching times from first to last, by a calendar whose clocks are never set."""
    times = CronSim(cron, first - timedelta(seconds=1))
    return set(itertools.takewhile(lambda wall: wall <= last, times))
