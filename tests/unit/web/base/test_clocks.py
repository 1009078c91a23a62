"""Times on pages: a zone with its summer time, 12 or 24 hours, and what a cookie may say."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from django.http import HttpRequest

from jobs.models import User
from jobs.statuses import HourFormat
from jobs.web.base import clocks
from jobs.web.base.clocks import Clock, clock_of
from tests.each_case import check_each

NOW = datetime(2026, 3, 29, 12, 0, tzinfo=timezone.utc)


@pytest.fixture(autouse=True)
def at_noon(monkeypatch):
    monkeypatch.setattr(clocks, "now", lambda: NOW)


def test_a_moment_is_shown_in_its_zone_with_summer_time_and_the_chosen_hours() -> None:
    def check(zone: str, hours: HourFormat, after_h: float, text: str) -> None:
        moment = NOW + timedelta(hours=after_h)
        assert Clock(zone, hours == HourFormat.HALF_DAY).when(moment) == text

    full, half = HourFormat.FULL_DAY, HourFormat.HALF_DAY
    check_each(
        [
            ("Europe/Berlin", full, 0, "14:00:00"),
            # In the night before, clocks were set from 02:00 to 03:00.
            ("Europe/Berlin", full, -11, "03:00:00"),
            ("Europe/Berlin", half, -11.5, "1:30:00 AM"),
            ("Asia/Tokyo", half, 0, "9:00:00 PM"),
            ("UTC", half, 0, "12:00:00 PM"),
            ("UTC", half, -12, "Mar 29, 12:00:00 AM"),
            ("UTC", full, -24 * 300, "Jun 2, 2025, 12:00:00"),
            ("UTC", full, 48, "Mar 31, 12:00:00"),
        ],
        check,
    )


def test_a_time_that_comes_twice_as_clocks_are_set_back_has_its_offset() -> None:
    def check(zone: str, hours: HourFormat, moment: datetime, text: str) -> None:
        assert Clock(zone, hours == HourFormat.HALF_DAY).slot(moment) == text

    full, half = HourFormat.FULL_DAY, HourFormat.HALF_DAY
    change = datetime(2026, 10, 25, 1, tzinfo=timezone.utc)
    minute, half_hour = timedelta(minutes=1), timedelta(minutes=30)
    york = datetime(2026, 11, 1, 6, tzinfo=timezone.utc)
    howe = datetime(2026, 4, 4, 15, tzinfo=timezone.utc)
    check_each(
        [
            ("Europe/Berlin", full, change - 2 * half_hour - minute, "Sun, Oct 25, 01:59"),
            ("Europe/Berlin", full, change - 2 * half_hour, "Sun, Oct 25, 02:00 UTC+2"),
            ("Europe/Berlin", full, change - half_hour, "Sun, Oct 25, 02:30 UTC+2"),
            ("Europe/Berlin", full, change + half_hour, "Sun, Oct 25, 02:30 UTC+1"),
            ("Europe/Berlin", full, change + 2 * half_hour, "Sun, Oct 25, 03:00"),
            ("America/New_York", half, york - half_hour, "Sun, Nov 1, 1:30 AM UTC-4"),
            ("America/New_York", half, york + half_hour, "Sun, Nov 1, 1:30 AM UTC-5"),
            ("Australia/Lord_Howe", full, howe - minute, "Sun, Apr 5, 01:59 UTC+11"),
            ("Australia/Lord_Howe", full, howe + minute, "Sun, Apr 5, 01:31 UTC+10:30"),
        ],
        check,
    )


def test_a_title_has_the_zone_and_utc() -> None:
    berlin = Clock("Europe/Berlin").title(NOW)
    assert berlin == "Mar 29, 2026, 14:00:00 Europe/Berlin · 2026-03-29 12:00:00 UTC"
    assert Clock().title(NOW) == "2026-03-29 12:00:00 UTC"


def test_what_a_user_leaves_open_is_read_from_the_browsers_cookie() -> None:
    def check(zone: str, hours: str, cookie: str, clock: Clock) -> None:
        request = HttpRequest()
        request.user = User(time_zone=zone, hour_format=hours)
        request.COOKIES["clock"] = cookie
        assert clock_of(request) == clock

    check_each(
        [
            ("", "", "Asia/Tokyo:12", Clock("Asia/Tokyo", has_half_days=True)),
            ("Europe/Berlin", "24", "Asia/Tokyo:12", Clock("Europe/Berlin")),
            ("", "12", "../../etc/passwd:24", Clock("UTC", has_half_days=True)),
            ("Not/There", "", "Europe", Clock()),
            ("", "", "", Clock()),
        ],
        check,
    )
