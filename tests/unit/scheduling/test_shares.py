"""Fair share: the arithmetic of use that decays, and that shares go towards their weights."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.scheduling.order import Order
from jobs.scheduling.shares import Account, decayed_use, promised_use
from jobs.scheduling.snapshot import QueuedJob, Share, Snapshot
from tests.unit.scheduling.shapes import shape

HOUR = 3600.0
WEEK = 7 * 24 * HOUR

pytestmark = pytest.mark.feature("P5.2")


def test_use_of_this_moment_counts_whole_and_of_a_half_life_ago_half():
    now = 10 * WEEK
    fresh = decayed_use(8, now - HOUR, now, now_s=now, half_life_s=WEEK)
    old = decayed_use(8, now - WEEK - HOUR, now - WEEK, now_s=now, half_life_s=WEEK)
    assert fresh == pytest.approx(8, rel=0.01)
    assert old == pytest.approx(fresh / 2)


moments = st.floats(0, 1e6)


@given(st.floats(0.1, 1e4), moments, moments, moments, st.floats(60, 1e7))
def test_use_in_two_parts_is_worth_what_it_is_in_one(units, first, second, third, half_life_s):
    begin, middle, end = sorted((first, second, third))

    def worth(since: float, until: float) -> float:
        return decayed_use(units, since, until, now_s=end, half_life_s=half_life_s)

    whole = worth(begin, middle) + worth(middle, end)
    assert whole == pytest.approx(worth(begin, end), rel=1e-6, abs=1e-6)


@given(st.floats(0.1, 1e4), moments, moments, moments, st.floats(3600, 1e7))
def test_an_account_carried_forward_is_what_the_attempt_itself_counts_then(
    units, first, second, third, half_life_s
):
    begin, end, later = sorted((first, second, third))
    then = decayed_use(units, begin, end, now_s=end, half_life_s=half_life_s)
    carried = Account(then, end).carried_to(later, half_life_s)
    direct = decayed_use(units, begin, end, now_s=later, half_life_s=half_life_s)
    assert carried == pytest.approx(direct, rel=1e-6, abs=1e-6)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(60, 1e6))
def test_use_never_counts_for_more_than_it_was_and_never_grows_by_waiting(value, wait, half_life_s):
    left = Account(value, 0.0).carried_to(wait, half_life_s)
    assert 0 <= left <= value
    assert Account(value, 100.0).carried_to(50.0, half_life_s) == value


def test_what_is_promised_is_at_most_an_hour():
    assert promised_use(8, None) == 8
    assert promised_use(8, 2 * HOUR) == 8
    assert promised_use(8, HOUR / 2) == 4
    assert promised_use(8, -1) == 0


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=4),
    st.randoms(use_true_random=False),
)
def test_shares_of_projects_that_always_want_more_go_towards_their_weights(weights, chance):
    # A machine of 20 units, jobs of an hour, every project always waits, simulated for 10 days.
    day = 24 * HOUR
    accounts = [Account(chance.uniform(0, 500), 0.0) for _ in weights]
    given_hours = [0.0] * len(weights)
    for hour in range(10 * 24):
        now = hour * HOUR
        shares = {
            ("p", number): Share(accounts[number].carried_to(now, day), weight)
            for number, weight in enumerate(weights)
        }
        requested = shape(1, pool="p")
        queued = [
            QueuedJob(number * 1000 + place, requested, project_id=number, duration_s=HOUR)
            for number in range(len(weights))
            for place in range(20)
        ]
        snapshot = Snapshot(
            tuple(queued), shares={(requested.pool, k): v for (_, k), v in shares.items()}
        )
        order = Order({requested.pool}, queued, snapshot)
        had = [0] * len(weights)
        for turn, job in enumerate(order):
            if turn == 20:
                break
            had[job.project_id] += 1
            order.charge(job)
        for number, units in enumerate(had):
            hours = decayed_use(units, now, now + HOUR, now_s=now + HOUR, half_life_s=day)
            left = accounts[number].carried_to(now + HOUR, day)
            accounts[number] = Account(left + hours, now + HOUR)
            if hour >= 5 * 24:
                given_hours[number] += units
    total, weight = sum(given_hours), sum(weights)
    for hours, own in zip(given_hours, weights, strict=True):
        assert hours / total == pytest.approx(own / weight, abs=0.05)


@given(st.integers(0, 10_000))
def test_people_of_one_project_take_turns_by_what_each_has_used(seed):
    chance = random.Random(seed)
    used = {("backend:local", 0, who): chance.uniform(0, 3) for who in range(3)}
    queued = [
        QueuedJob(who * 10 + place, shape(), person_id=who, duration_s=HOUR)
        for who in range(3)
        for place in range(4)
    ]
    order = Order({"backend:local"}, queued, Snapshot(tuple(queued), persons=used))
    now = {who: used["backend:local", 0, who] for who in range(3)}
    left = dict.fromkeys(range(3), 4)
    for job in order:
        least = min((now[who], left[who]) for who in range(3) if left[who])[0]
        assert math.isclose(now[job.person_id], least)
        now[job.person_id] += 1
        left[job.person_id] -= 1
        order.charge(job)
