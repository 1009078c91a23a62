"""Budgets: one warning at each threshold, spent when nothing is left, the same for all readers."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.policies.budgets import (
    Month,
    Stand,
    Terms,
    is_void,
    newly_crossed,
    stand_of,
    why_held,
)
from jobs.policies.costs import percent_of
from jobs.statuses import OnSpent

AMOUNTS = st.decimals(0, 10**7, places=6)
BUDGETS = st.decimals("0.01", 10**7, places=2)
THRESHOLDS = st.lists(st.integers(1, 1000), max_size=10).map(tuple)
FIRST, LAST = (datetime(year, 1, 1) for year in (2000, 2200))  # noqa: DTZ001 - st adds UTC
MOMENTS = st.datetimes(FIRST, LAST, timezones=st.just(timezone.utc))

pytestmark = pytest.mark.feature("P5.6")


@given(AMOUNTS, BUDGETS)
def test_a_budget_is_spent_exactly_when_nothing_of_it_is_left(spent, usd):
    assert (percent_of(spent, usd) >= 100) == (spent >= usd)


@given(AMOUNTS, BUDGETS, st.sampled_from(OnSpent))
def test_only_what_is_spent_holds_and_only_what_holds_stops(spent, usd, on_spent):
    terms = Terms(usd, on_spent)
    assert terms.stops(spent) <= terms.holds(spent) <= terms.is_spent(spent)
    assert terms.is_spent(spent) <= (terms.holds(spent) or on_spent == OnSpent.WARN)
    assert terms.stops(spent) == (on_spent == OnSpent.STOP and terms.is_spent(spent))


@given(st.lists(AMOUNTS, max_size=12), BUDGETS, THRESHOLDS)
def test_however_often_it_is_looked_each_threshold_is_reported_once_and_in_order(looks, usd, at):
    terms, reported = Terms(usd, OnSpent.WARN, at), []
    for spent in sorted(looks):
        reported += newly_crossed(terms, spent, reported)
    most = max(looks, default=Decimal(0))
    assert reported == sorted(each for each in set(at) if most * 100 >= each * usd)


@given(AMOUNTS, BUDGETS, BUDGETS, st.integers(1, 1000))
def test_a_reported_threshold_stays_reported_until_the_amount_puts_it_out_of_reach(
    spent, old, new, at
):
    terms = Terms(old, OnSpent.WARN, (at,))
    if newly_crossed(terms, spent, ()):
        assert not is_void(at, spent, old)
        again = newly_crossed(Terms(new, OnSpent.WARN, (at,)), spent, ())
        assert is_void(at, spent, new) == (not again)


@given(MOMENTS)
def test_months_meet_and_every_moment_is_in_one(moment):
    month = Month.of(moment)
    assert month.begin <= moment < month.end
    assert Month.of(month.end).begin == month.end
    assert Month.of(month.begin) == Month.of(month.end - timedelta(microseconds=1)) == month


def test_the_month_is_that_of_utc():
    east = timezone(timedelta(hours=14))
    assert str(Month.of(datetime(2026, 12, 1, 3, tzinfo=east))) == "November 2026"


@given(AMOUNTS, st.floats(0.01, 10**7))
def test_a_job_is_warned_from_four_fifths_on_and_stopped_at_the_whole(spent, usd):
    budget = Decimal(str(usd))
    stand = stand_of(spent, budget)
    assert (stand is Stand.SPENT) == (spent >= budget)
    assert (stand is Stand.FINE) == (spent * 100 < 80 * budget)


def test_a_budget_of_next_to_nothing_is_spent_and_breaks_nothing():
    assert stand_of(Decimal(10**7), Decimal("5e-324")) is Stand.SPENT


def test_a_waiting_job_gets_numbers_and_the_begin_of_the_next_month():
    month = Month.of(datetime(2026, 11, 24, tzinfo=timezone.utc))
    said = why_held("rl", Terms(Decimal(100), OnSpent.HOLD), Decimal("104.72"), month)
    assert said == (
        "Project rl has used 104 % of its $100.00 for November 2026. Its jobs start again on "
        "1 December 2026, 00:00 UTC, or when an administrator raises the amount."
    )
