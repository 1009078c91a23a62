"""Guarantees of a `ClusterKeeper` beside the rest of the contract, tested on each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import TypeVar

import pytest

from jobs.backends.base import ClusterKeeper, ClusterPhase, LaunchRequest, is_keeping
from jobs.backends.fake.backend import FakeBackend
from tests.integration.backends.asking import (
    launch,
    retried,
    stop_until_ended,
    tear_down,
    view_of,
    wait_for,
)
from tests.integration.backends.rigs import Behaviour, Rig

Answer = TypeVar("Answer")
EARLIER = datetime.now(timezone.utc) - timedelta(days=1)


def requested(rig: Rig, call: Callable[[ClusterKeeper], Answer]) -> Answer:
    """Return what `call` gives for the rig's backend, once that has an answer."""
    assert is_keeping(rig.backend)
    keeper = rig.backend
    return retried(rig, lambda: call(keeper))


def phase_of(rig: Rig, request: LaunchRequest) -> ClusterPhase:
    return view_of(rig, request).phase


def next_on(rig: Rig, first: LaunchRequest, behaviour: Behaviour = "short") -> LaunchRequest:
    """Return the request of a second attempt on machines whose first attempt may still run."""
    request = rig.request(behaviour)
    spec = {**request.spec, "portal": {"port": 24_000}}
    return replace(request, cluster_name=first.cluster_name, spec=spec)


def done(rig: Rig) -> LaunchRequest:
    """Return an attempt that has ended, on machines that still exist."""
    request = rig.request("short")
    launch(rig, request)
    wait_for(rig, request, ClusterPhase.ENDED)
    return request


def switched_off(rig: Rig) -> LaunchRequest:
    request = done(rig)
    switch_off(rig, request.cluster_name)
    return request


def switch_off(rig: Rig, name: str) -> None:
    requested(rig, lambda backend: backend.stop_machines(name))


def names(rig: Rig) -> list[str]:
    return [seen.name for seen in requested(rig, lambda backend: backend.existing())]


def test_machines_take_a_second_attempt_after_the_first_and_each_has_its_own_phase(
    keeper: Rig,
) -> None:
    first = done(keeper)
    second = next_on(keeper, first, "long")
    assert phase_of(keeper, second) is ClusterPhase.GONE  # never started there
    launch(keeper, second)
    wait_for(keeper, second, ClusterPhase.UP)
    assert phase_of(keeper, first) is ClusterPhase.ENDED
    assert names(keeper) == [first.cluster_name]


def test_a_repeated_launch_on_kept_machines_starts_the_attempt_once(keeper: Rig) -> None:
    first = done(keeper)
    second = next_on(keeper, first)
    for _ in range(2):
        launch(keeper, second)
        wait_for(keeper, second, ClusterPhase.ENDED)
    launch(keeper, second)
    assert phase_of(keeper, second) is ClusterPhase.ENDED


@pytest.mark.feature("S0.6")
def test_stopping_one_attempt_leaves_another_on_the_same_machines_alone(keeper: Rig) -> None:
    first = keeper.request("long")
    launch(keeper, first)
    wait_for(keeper, first, ClusterPhase.UP)
    second = next_on(keeper, first, "long")
    launch(keeper, second)
    wait_for(keeper, second, ClusterPhase.UP)
    stop_until_ended(keeper, first)
    assert phase_of(keeper, second) is ClusterPhase.UP


@pytest.mark.feature("P6.3")
def test_machines_that_were_switched_off_are_kept_and_a_launch_switches_them_on(
    keeper: Rig,
) -> None:
    first = switched_off(keeper)
    assert phase_of(keeper, first) is ClusterPhase.STOPPED
    assert names(keeper) == [first.cluster_name]
    second = next_on(keeper, first, "long")
    launch(keeper, second)
    wait_for(keeper, second, ClusterPhase.UP)
    assert names(keeper) == [first.cluster_name]


def test_switching_off_may_be_repeated_and_ends_what_runs(keeper: Rig) -> None:
    request = keeper.request("long")
    launch(keeper, request)
    wait_for(keeper, request, ClusterPhase.UP)
    for _ in range(2):
        switch_off(keeper, request.cluster_name)
    assert phase_of(keeper, request) is ClusterPhase.STOPPED


def test_no_error_about_machines_that_do_not_exist(keeper: Rig) -> None:
    switch_off(keeper, "mptest-unknown")
    requested(keeper, lambda backend: backend.autostop("mptest-unknown", 10, down=True))
    assert names(keeper) == []


@pytest.mark.parametrize("make", [done, switched_off])
def test_a_tear_down_of_kept_machines_leaves_nothing_behind(keeper: Rig, make) -> None:
    request = make(keeper)
    tear_down(keeper, request.cluster_name)
    assert phase_of(keeper, request) is ClusterPhase.GONE
    assert keeper.remains(request.cluster_name) == []
    assert names(keeper) == []


def test_what_machines_have_cost_is_reported_also_after_their_end(keeper: Rig) -> None:
    request = done(keeper)
    price = requested(keeper, lambda backend: backend.existing())[0].usd_per_hour
    assert price
    bill = requested(keeper, lambda backend: backend.bill(request.cluster_name, EARLIER))
    assert bill is not None
    assert bill.usd <= price * Decimal(bill.duration_s + 1) / 3600
    tear_down(keeper, request.cluster_name)
    after = requested(keeper, lambda backend: backend.bill(request.cluster_name, EARLIER))
    assert after is not None
    assert after.usd >= bill.usd


def test_a_plan_starts_nothing_and_has_a_price(keeper: Rig) -> None:
    plan = requested(keeper, lambda backend: backend.plan({"num_nodes": 2, "run": "true"}))
    assert [each.usd_per_hour > 0 for each in plan.candidates if each.is_chosen] == [True]
    assert names(keeper) == []


@pytest.mark.feature("P6.3")
def test_where_machines_cannot_be_switched_off_a_job_that_wants_it_is_refused_with_the_reason(
    keeper: Rig,
) -> None:
    portal = {"reuse": True, "idle": {"minutes": 5, "then": "stop"}}
    spec = {"num_nodes": 1, "run": "true", "portal": portal}
    assert requested(keeper, lambda backend: backend.check(spec)) == []
    if isinstance(keeper.backend, FakeBackend):
        keeper.backend.refuse_stop("Slurm keeps no disks.")
        assert keeper.backend.check(spec) == [("portal.idle.then", "Slurm keeps no disks.")]
