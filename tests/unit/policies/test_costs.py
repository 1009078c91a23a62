"""A bill is divided by time, and nothing of it is lost or doubled."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from jobs.policies.costs import (
    Charge,
    Use,
    for_time,
    per_hour,
    shares,
    slices,
    so_far,
    within,
)

MICRO = Decimal("0.000001")
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


def charge(usd="6", billed=60.0, ended: float | None = None, price="6") -> Charge:
    return Charge(
        began=at(0),
        usd=None if usd is None else Decimal(usd),
        usd_per_hour=None if price is None else Decimal(price),
        billed_at=None if billed is None else at(billed),
        ended=None if ended is None else at(ended),
    )


def test_what_a_cluster_has_cost_is_its_bill_and_its_price_since():
    assert so_far(charge(), at(90)) == 9
    assert so_far(charge(usd=None, billed=None), at(30)) == 3


def test_a_cluster_that_has_ended_costs_no_more_than_its_last_bill():
    assert so_far(charge(billed=61, ended=60), at(900)) == 6
    assert so_far(charge(billed=50, ended=60), at(900)) == 7


def test_without_a_price_only_the_bill_counts():
    assert so_far(charge(price=None), at(600)) == 6
    assert so_far(charge(usd=None, billed=None, price=None), at(600)) == 0


@given(
    usd=st.decimals(0, 10**6, places=6),
    length=st.floats(0, 10**5),
    cuts=st.lists(st.floats(-100, 10**5), max_size=6),
)
def test_parts_of_windows_that_meet_add_up_to_what_was_spent(usd, length, cuts):
    marks = [at(-200), *map(at, sorted(cuts)), at(2 * 10**5)]
    parts = [
        within(usd, began=at(0), until=at(length), begin=begin, end=end)
        for begin, end in itertools.pairwise(marks)
    ]
    assert sum(parts) == usd
    assert all(part >= 0 for part in parts)


@given(
    usd=st.decimals(0, 10**6, places=6),
    waits=st.booleans(),
    spans=st.lists(st.tuples(st.floats(-5, 90), st.floats(0, 90) | st.none()), max_size=5),
    cuts=st.lists(st.floats(0, 60), max_size=4),
)
def test_slices_say_the_same_as_shares_and_as_windows(usd, waits, spans, cuts):
    uses = [
        Use(number, at(begin), None if length is None else at(begin + length))
        for number, (begin, length) in enumerate(spans)
    ]
    span = {"began": at(0), "until": at(60)}
    found = slices(usd, uses, **span, waits=waits, cuts=map(at, cuts))
    assert abs(sum(each.usd for each in found) - usd) < MICRO
    divided = shares(usd, uses, **span, waits=waits)
    for who, share in divided.of_attempts.items():
        mine = sum(each.usd for each in found if each.attempt_id == who)
        assert abs(mine - share) <= MICRO * (len(uses) + 1)
    for cut in map(at, cuts):
        early = sum(each.usd for each in found if each.begin < cut)
        assert all(each.end <= cut or each.begin >= cut for each in found)
        assert abs(early - within(usd, **span, begin=at(-1), end=cut)) <= 2 * MICRO
