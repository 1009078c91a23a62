"""A bill is divided by time, and nothing of it is lost or doubled."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from jobs.policies.costs import Use, for_time, per_hour, shares

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def test_the_only_attempt_of_a_cluster_pays_all_of_it():
    divided = shares(
        Decimal("1.234567"), [Use(7, at(1), at(9))], began=at(0), until=at(30), waits=False
    )
    assert divided.of_attempts == {7: Decimal("1.234567")}
    assert divided.idle == 0


def test_a_cluster_that_waits_costs_its_project_the_time_after_the_last_attempt():
    divided = shares(Decimal(6), [Use(7, at(1), at(40))], began=at(0), until=at(60), waits=True)
    assert divided.of_attempts == {7: Decimal(4)}
    assert divided.idle == 2


def test_attempts_one_after_the_other_pay_for_their_own_time():
    uses = [Use(8, at(30), None), Use(7, at(2), at(10))]
    divided = shares(Decimal(6), uses, began=at(0), until=at(60), waits=True)
    assert divided.of_attempts == {7: Decimal(1), 8: Decimal(3)}
    assert divided.idle == 2


def test_attempts_at_one_time_share_it_evenly():
    uses = [Use(7, at(0), at(60)), Use(8, at(30), at(60))]
    divided = shares(Decimal(6), uses, began=at(0), until=at(60), waits=False)
    assert divided.of_attempts == {7: Decimal("4.5"), 8: Decimal("1.5")}


def test_without_an_attempt_all_of_it_is_idle_time():
    assert shares(Decimal(2), [], began=at(0), until=at(60), waits=True).idle == 2


@given(
    usd=st.decimals(0, 10**6, places=6),
    waits=st.booleans(),
    spans=st.lists(st.tuples(st.floats(-5, 90), st.floats(0, 90) | st.none()), max_size=6),
)
def test_the_parts_add_up_to_the_bill_to_the_last_digit(usd, waits, spans):
    uses = [
        Use(number, at(begin), None if length is None else at(begin + length))
        for number, (begin, length) in enumerate(spans)
    ]
    divided = shares(usd, uses, began=at(0), until=at(60), waits=waits)
    assert sum(divided.of_attempts.values()) + divided.idle == usd
    assert all(part >= 0 for part in [*divided.of_attempts.values(), divided.idle])


def test_prices_for_a_time_and_back():
    assert for_time(Decimal("2.5"), 90) == Decimal("0.0625")
    assert per_hour(Decimal("0.0625"), 90) == Decimal("2.5")
    assert per_hour(Decimal(1), 0) is None
