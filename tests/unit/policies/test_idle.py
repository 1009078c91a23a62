"""The end of an idle warm cluster: what is done with it, and when."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.policies.idle import (
    BACKSTOP_MARGIN_MINUTES,
    IdlePolicy,
    Kept,
    SwitchOff,
    TakeDown,
    Wait,
    backstop_minutes,
    decide,
    idle_end,
    longer_backstop,
)
from jobs.policies.limits import Limit

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def kept(idle_min: float, *, stopped_min: float | None = None, **policy) -> Kept:
    stopped_at = None if stopped_min is None else ago(stopped_min)
    return Kept(ago(idle_min), IdlePolicy(**policy), stopped_at)


def test_it_waits_for_as_long_as_its_job_requested_and_is_then_terminated():
    assert decide(kept(9, minutes=10), None, NOW) == Wait(NOW + timedelta(minutes=1))
    assert decide(kept(10, minutes=10), None, NOW) == TakeDown("No job was on it for 10 min.")


def test_it_is_stopped_first_where_that_was_requested():
    policy = {"minutes": 10, "then": "stop", "down_after": 60}
    assert decide(kept(10, **policy), None, NOW) == SwitchOff("No job was on it for 10 min.")
    off = kept(69, stopped_min=59, **policy)
    assert decide(off, None, NOW) == Wait(NOW + timedelta(minutes=1))
    gone = decide(kept(70, stopped_min=60, **policy), None, NOW)
    assert gone == TakeDown("It was switched off for 60 min.")


def test_one_that_is_switched_off_stays_so_unless_its_job_said_until_when():
    off = kept(9999, stopped_min=9000, minutes=1, then="stop")
    assert decide(off, None, NOW) == Wait(None)


def test_a_longer_idle_time_is_granted_and_never_less_than_its_job_requested():
    longer = kept(10, minutes=10, until=NOW + timedelta(minutes=5))
    assert decide(longer, None, NOW) == Wait(NOW + timedelta(minutes=5))
    less = kept(5, minutes=10, until=NOW + timedelta(minutes=1))
    assert decide(less, None, NOW) == Wait(NOW + timedelta(minutes=5))


@given(
    st.integers(1, 10_000),
    st.none() | st.integers(-1000, 10_000),
    st.integers(1, 5000),
    st.floats(0, 20_000),
)
def test_nothing_keeps_it_beyond_what_an_administrator_allows(minutes, until, limit, idle):
    until_at = None if until is None else NOW + timedelta(minutes=until)
    cluster = kept(idle, minutes=minutes, until=until_at)
    decision = decide(cluster, Limit(limit, "this installation"), NOW)
    assert isinstance(decision, TakeDown) or idle < limit
    assert idle_end(cluster, Limit(limit, "x")) <= cluster.idle_since + timedelta(minutes=limit)


@pytest.mark.parametrize("limit", [None, Limit(20, "project rl")])
def test_the_backends_own_stop_comes_later_than_the_portals(limit):
    since = ago(5)
    policy = IdlePolicy(minutes=10, until=NOW + timedelta(minutes=60))
    ends = idle_end(Kept(since, policy), limit)
    backstop = since + timedelta(minutes=backstop_minutes(policy, limit, since))
    assert backstop - ends >= timedelta(minutes=BACKSTOP_MARGIN_MINUTES)


def test_a_policy_is_stored_and_read_back():
    policy = IdlePolicy(5, "stop", 60, NOW)
    assert IdlePolicy.from_dict(policy.to_dict()) == policy
    assert IdlePolicy.from_dict({"backstop": 40}) == IdlePolicy()


def test_a_cluster_that_a_waiting_job_names_stays_for_as_long_as_an_administrator_allows():
    for policy in ({}, {"then": "stop"}):
        late = kept(5000, minutes=10, **policy)
        assert decide(late, None, NOW, is_named=True) == Wait(None)
        ends = decide(late, Limit(4999, "project rl"), NOW, is_named=True)
        assert isinstance(ends, TakeDown | SwitchOff)
    off = kept(9000, stopped_min=8000, minutes=10, then="stop", down_after=60)
    assert decide(off, Limit(20, "project rl"), NOW, is_named=True) == Wait(None)


@given(st.integers(0, 5000), st.integers(0, 5000), st.none() | st.integers(1, 5000))
def test_while_a_cluster_is_wanted_the_backend_does_not_end_it_before_the_portal(
    reported, idle, most
):
    limit = None if most is None else Limit(most, "project rl")
    minutes = longer_backstop(reported, limit, timedelta(minutes=idle))
    until = idle if most is None else min(idle, most)
    assert minutes >= until + BACKSTOP_MARGIN_MINUTES // 2
    assert longer_backstop(minutes, limit, timedelta(minutes=idle)) == minutes
