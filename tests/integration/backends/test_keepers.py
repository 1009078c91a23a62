"""What a `ClusterKeeper` promises beside the rest of the contract, shown on each of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from jobs.backends.base import ClusterKeeper, ClusterPhase, LaunchRequest, is_keeping
from jobs.backends.fake import FakeBackend
from jobs.errors import NotYetGoneError
from tests.integration.backends.rigs import GRACE_S, Behaviour, Rig
from tests.runner_harness import wait_until

EARLIER = datetime.now(timezone.utc) - timedelta(days=1)


def backend_of(rig: Rig) -> ClusterKeeper:
    assert is_keeping(rig.backend)
    return rig.backend


def wait_for(rig: Rig, request: LaunchRequest, phase: ClusterPhase) -> None:
    wait_until(lambda: phase_of(rig, request) is phase)


def phase_of(rig: Rig, request: LaunchRequest) -> ClusterPhase:
    view = rig.backend.observe(request.cluster_name, attempt_id=request.attempt_id)
    return view.phase


def next_on(rig: Rig, first: LaunchRequest, behaviour: Behaviour = "short") -> LaunchRequest:
    """A second attempt on the machines of the first, which may run still."""
    request = rig.request(behaviour)
    spec = {**request.spec, "portal": {"port": 24_000}}
    return replace(request, cluster_name=first.cluster_name, spec=spec)


def done(rig: Rig) -> LaunchRequest:
    """An attempt that has ended, on machines that are there still."""
    request = rig.request("short")
    rig.backend.launch(request)
    wait_for(rig, request, ClusterPhase.ENDED)
    return request


def switched_off(rig: Rig) -> LaunchRequest:
    request = done(rig)
    wait_until(lambda: is_off(rig, request.cluster_name))
    return request


def is_off(rig: Rig, name: str) -> bool:
    try:
        backend_of(rig).stop_machines(name)
    except NotYetGoneError:
        return False
    return True


def has_stopped(rig: Rig, request: LaunchRequest) -> bool:
    """Asked again and again, as the reconcilers ask."""
    rig.backend.stop(request.cluster_name, GRACE_S, attempt_id=request.attempt_id)
    return phase_of(rig, request) is ClusterPhase.ENDED


def is_gone(rig: Rig, name: str) -> bool:
    try:
        rig.backend.tear_down(name)
    except NotYetGoneError:
        return False
    return True


def names(rig: Rig) -> list[str]:
    return [seen.name for seen in backend_of(rig).existing()]


def test_machines_take_a_second_attempt_after_the_first_and_each_has_its_own_phase(
    keeper: Rig,
) -> None:
    first = done(keeper)
    second = next_on(keeper, first, "long")
    assert phase_of(keeper, second) is ClusterPhase.GONE  # never started there
    keeper.backend.launch(second)
    wait_for(keeper, second, ClusterPhase.UP)
    assert phase_of(keeper, first) is ClusterPhase.ENDED
    assert names(keeper) == [first.cluster_name]


def test_a_repeated_launch_on_kept_machines_starts_the_attempt_once(keeper: Rig) -> None:
    first = done(keeper)
    second = next_on(keeper, first)
    for _ in range(2):
        keeper.backend.launch(second)
        wait_for(keeper, second, ClusterPhase.ENDED)
    keeper.backend.launch(second)
    assert phase_of(keeper, second) is ClusterPhase.ENDED


@pytest.mark.feature("S0.6")
def test_stopping_one_attempt_leaves_another_on_the_same_machines_alone(keeper: Rig) -> None:
    first = keeper.request("long")
    keeper.backend.launch(first)
    wait_for(keeper, first, ClusterPhase.UP)
    second = next_on(keeper, first, "long")
    keeper.backend.launch(second)
    wait_for(keeper, second, ClusterPhase.UP)
    wait_until(lambda: has_stopped(keeper, first))
    assert phase_of(keeper, second) is ClusterPhase.UP


@pytest.mark.feature("P6.3")
def test_machines_that_were_switched_off_are_kept_and_a_launch_switches_them_on(
    keeper: Rig,
) -> None:
    first = switched_off(keeper)
    assert phase_of(keeper, first) is ClusterPhase.STOPPED
    assert names(keeper) == [first.cluster_name]
    second = next_on(keeper, first, "long")
    keeper.backend.launch(second)
    wait_for(keeper, second, ClusterPhase.UP)
    assert names(keeper) == [first.cluster_name]


def test_switching_off_may_be_repeated_and_ends_what_runs(keeper: Rig) -> None:
    request = keeper.request("long")
    keeper.backend.launch(request)
    wait_for(keeper, request, ClusterPhase.UP)
    for _ in range(2):
        wait_until(lambda: is_off(keeper, request.cluster_name))
    assert phase_of(keeper, request) is ClusterPhase.STOPPED


def test_silence_about_machines_that_nobody_has(keeper: Rig) -> None:
    backend_of(keeper).stop_machines("mptest-unknown")
    backend_of(keeper).autostop("mptest-unknown", 10, down=True)
    assert names(keeper) == []


@pytest.mark.parametrize("make", [done, switched_off])
def test_a_tear_down_of_kept_machines_leaves_nothing_behind(keeper: Rig, make) -> None:
    request = make(keeper)
    wait_until(lambda: is_gone(keeper, request.cluster_name))
    assert phase_of(keeper, request) is ClusterPhase.GONE
    assert keeper.remains(request.cluster_name) == []
    assert names(keeper) == []


def test_what_machines_have_cost_is_told_also_after_their_end(keeper: Rig) -> None:
    request = done(keeper)
    price = backend_of(keeper).existing()[0].usd_per_hour
    assert price
    bill = backend_of(keeper).bill(request.cluster_name, EARLIER)
    assert bill is not None
    assert bill.usd <= price * Decimal(bill.duration_s + 1) / 3600
    wait_until(lambda: is_gone(keeper, request.cluster_name))
    after = backend_of(keeper).bill(request.cluster_name, EARLIER)
    assert after is not None
    assert after.usd >= bill.usd


def test_a_plan_starts_nothing_and_has_a_price(keeper: Rig) -> None:
    plan = backend_of(keeper).plan({"num_nodes": 2, "run": "true"})
    assert [each.usd_per_hour > 0 for each in plan.candidates if each.is_chosen] == [True]
    assert names(keeper) == []


@pytest.mark.feature("P6.3")
def test_where_machines_cannot_be_switched_off_a_job_that_wants_it_is_refused_with_the_reason(
    keeper: Rig,
) -> None:
    portal = {"reuse": True, "idle": {"minutes": 5, "then": "stop"}}
    spec = {"num_nodes": 1, "run": "true", "portal": portal}
    assert keeper.backend.check(spec) == []
    if isinstance(keeper.backend, FakeBackend):
        keeper.backend.refuse_stop("Slurm keeps no disks.")
        assert keeper.backend.check(spec) == [("portal.idle.then", "Slurm keeps no disks.")]
