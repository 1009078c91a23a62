"""The runs that a schedule makes for the times that have come, by its catch-up policy."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.policies.schedules import IN_TIME, MOST_CAUGHT_UP, MOST_COUNTED, turn_of, upcoming
from jobs.policies.timetables import Timetable
from jobs.statuses import CatchUpPolicy

HOURLY = Timetable.of("@hourly", "UTC")
NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
policies = st.sampled_from(list(CatchUpPolicy))


@pytest.mark.parametrize("catch_up", CatchUpPolicy)
def test_nothing_is_done_before_the_time_has_come(catch_up):
    assert turn_of(HOURLY, NOON, NOON - SECOND, catch_up) is None


@pytest.mark.feature("P9.2")
@pytest.mark.parametrize("catch_up", CatchUpPolicy)
def test_a_time_that_is_looked_at_in_time_runs_by_every_policy(catch_up):
    turn = turn_of(HOURLY, NOON, NOON + IN_TIME, catch_up)
    assert (turn.slot, turn.missed, turn.next_at) == (NOON, None, NOON + HOUR)


@pytest.mark.feature("P9.2")
def test_after_an_outage_none_runs_none_of_what_was_missed():
    turn = turn_of(HOURLY, NOON, NOON + 5.5 * HOUR, CatchUpPolicy.NONE)
    assert (turn.slot, turn.next_at) == (None, NOON + 6 * HOUR)
    missed = turn.missed
    assert (missed.first, missed.last, missed.count) == (NOON, NOON + 5 * HOUR, 6)


@pytest.mark.feature("P9.2")
def test_after_an_outage_latest_runs_once_for_the_newest_time():
    turn = turn_of(HOURLY, NOON, NOON + 5.5 * HOUR, CatchUpPolicy.LATEST)
    assert (turn.slot, turn.next_at) == (NOON + 5 * HOUR, NOON + 6 * HOUR)
    assert (turn.missed.count, turn.missed.how_many) == (5, "5 times")


@pytest.mark.feature("P9.2")
def test_after_an_outage_all_runs_each_time_oldest_first():
    at, slots = NOON, []
    while turn := turn_of(HOURLY, at, NOON + 5.5 * HOUR, CatchUpPolicy.ALL):
        assert turn.missed is None
        slots.append(turn.slot)
        at = turn.next_at
    assert slots == [NOON + n * HOUR for n in range(6)]
    assert at == NOON + 6 * HOUR


@pytest.mark.feature("P9.2")
def test_all_has_a_cap_and_what_is_beyond_it_is_reported():
    turn = turn_of(HOURLY, NOON, NOON + 40 * HOUR, CatchUpPolicy.ALL)
    assert turn.slot == NOON + (41 - MOST_CAUGHT_UP) * HOUR
    assert turn.missed.count == 41 - MOST_CAUGHT_UP


def test_of_very_many_missed_times_it_is_said_that_they_are_more():
    minutely = Timetable.of("* * * * *", "UTC")
    turn = turn_of(minutely, NOON, NOON + timedelta(days=3000), CatchUpPolicy.LATEST)
    assert turn.missed.count == MOST_COUNTED + 1
    assert turn.missed.how_many == "more than 100 times"


def test_a_time_that_the_zone_no_longer_has_is_left_out():
    turn = turn_of(HOURLY, NOON + SECOND, NOON + 2 * SECOND, CatchUpPolicy.LATEST)
    assert (turn.slot, turn.missed, turn.next_at) == (None, None, NOON + HOUR)


@pytest.mark.feature("P9.2")
@settings(deadline=None, max_examples=50)
@given(policies, st.lists(st.timedeltas(SECOND, 30 * HOUR), min_size=1, max_size=3))
def test_whenever_one_looks_no_time_runs_twice_and_each_is_run_or_missed(catch_up, rests):
    at, now, ran, missed = NOON, NOON, [], 0
    for rest in rests:
        now += rest
        while turn := turn_of(HOURLY, at, now, catch_up):
            ran += [turn.slot] if turn.slot else []
            missed += turn.missed.count if turn.missed else 0
            assert turn.next_at > at
            at = turn.next_at
    assert ran == sorted(set(ran))
    assert all(slot <= now for slot in ran)
    assert len(ran) + missed == (at - NOON) / HOUR
    assert at > now


def test_the_next_times_are_shown():
    assert upcoming(HOURLY, NOON, 3) == [NOON + n * HOUR for n in (1, 2, 3)]
