"""The run time of a job, and which limit decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.policies.limits import (
    Limit,
    most_extension_s,
    should_warn,
    shown_minutes_s,
    shown_s,
    smaller,
    walltime_s,
)

HOUR = 3600


def test_the_smaller_limit_counts_and_says_whose_it_is():
    assert smaller(5, 9, "rl") == Limit(5, "project rl")
    assert smaller(9, 5, "rl") == Limit(5, "this installation")
    assert smaller(None, 5, "rl") == Limit(5, "this installation")
    assert smaller(None, None, "rl") is None
    assert smaller(None, 0, "rl") is None


def test_a_job_that_asks_for_nothing_gets_the_limit():
    assert walltime_s(None, 0, Limit(HOUR, "x")) == HOUR
    assert walltime_s(None, 0, None) is None


def test_a_job_gets_what_it_requested_and_what_was_added():
    assert walltime_s(HOUR, 600, None) == HOUR + 600


@given(st.none() | st.integers(1, 10**6), st.integers(0, 10**6), st.none() | st.integers(1, 10**6))
def test_nothing_goes_beyond_the_limit_and_all_that_can_be_added_reaches_it(
    requested, extended, most
):
    limit = None if most is None else Limit(most, "x")
    walltime = walltime_s(requested, extended, limit)
    if limit is not None:
        assert walltime is not None
        assert walltime <= limit.value
    room = most_extension_s(requested, extended, limit)
    if room and limit is not None:
        assert walltime_s(requested, extended + room, limit) == limit.value


@pytest.mark.parametrize(
    ("ran_s", "walltime", "warned"),
    [(HOUR - 601, HOUR, False), (HOUR - 600, HOUR, True), (74, 100, False), (75, 100, True)],
)
def test_the_end_is_announced_ten_minutes_ahead_or_in_the_last_quarter_of_a_short_job(
    ran_s, walltime, warned
):
    assert should_warn(ran_s, walltime) is warned


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (90, "1 min 30 s"),
        (9000, "2 h 30 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_lengths_of_time_are_reported_in_words(seconds, text):
    assert shown_s(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(598.2, "10 min"), (60, "1 min"), (42, "42 s")])
def test_the_remaining_time_is_shown_to_the_minute(seconds, text):
    assert shown_minutes_s(seconds) == text
