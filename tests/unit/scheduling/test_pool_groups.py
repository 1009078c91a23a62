"""Pools and bare backends that share machines: one queue, and places that hold in all of them."""

from __future__ import annotations

import pytest

from jobs.scheduling.causes import Behind, NoRoom
from jobs.scheduling.limits import Limit, LimitKind, Shape
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import (
    Decision,
    Preempt,
    Preemption,
    QueuedJob,
    RunningJob,
    Share,
    Snapshot,
    Start,
    Wait,
)
from tests.unit.scheduling.shapes import machines, shape, started

pytestmark = pytest.mark.feature("P5.1")
HOUR = 3600.0
BY_RANK = Preemption(by_rank=True)


def pools(running: tuple[RunningJob, ...] = (), backend: float = 2, **nodes: float) -> dict:
    """Return the limits of backend `local` and its pools, with the usage of running jobs."""
    limits = machines(local=backend)
    for name, total in nodes.items():
        limits[f"pool:{name}"] = Limit(LimitKind.POOL, name, {"nodes": float(total)})
    for each in running:
        for key in each.shape.limits:
            limits[key].take(each.shape.demand)
    return limits


def of(nodes: int, pool: str = "") -> Shape:
    return shape(nodes, pool=pool)


def by_number(decisions: list[Decision]) -> dict[int, Decision]:
    return {each.job_id: each for each in decisions}


@pytest.mark.feature("P5.4")
def test_what_low_jobs_give_up_goes_to_the_urgent_one_and_not_to_those_without_a_pool():
    low = tuple(RunningJob(n, of(1, "gpus"), is_preemptible=True) for n in (1, 2))
    others = tuple(QueuedJob(n, of(1)) for n in (3, 4, 5))
    urgent = QueuedJob(9, of(2, "gpus"), rank=10)
    allowed = {"pool:gpus": BY_RANK}
    limits = pools(low, gpus=2)
    first, *rest = plan(Snapshot((*others, urgent), low, limits, preemption=allowed))
    assert isinstance(first, Preempt)
    assert sorted(first.victims) == [1, 2]
    assert {each.cause for each in rest if isinstance(each, Wait)} == {Behind(9)}
    claiming = QueuedJob(9, of(2, "gpus"), rank=10, has_claim=True)
    again = tuple(QueuedJob(n, of(1, "gpus"), stopped_for=9) for n in (1, 2))
    after = Snapshot((*others, *again, claiming), (), pools(gpus=2), preemption=allowed)
    assert started(after) == [9]


def test_projects_take_turns_on_a_backend_by_what_they_used_of_all_its_pools():
    queued = (QueuedJob(1, of(1), project_id=1), QueuedJob(2, of(1, "a"), project_id=2))
    shares = {
        ("backend:local", 1): Share(1.0),
        ("pool:a", 1): Share(4.0),
        ("pool:a", 2): Share(3.0),
    }
    snapshot = Snapshot(queued, limits=pools(backend=1, a=1), shares=shares)
    assert started(snapshot) == [2]


def test_a_higher_queue_of_one_pool_comes_before_a_lower_one_of_another_on_the_same_machines():
    queued = (QueuedJob(1, of(2)), QueuedJob(2, of(2, "a")), QueuedJob(3, of(2, "z"), rank=1))
    assert started(Snapshot(queued, limits=pools(a=2, z=2))) == [3]


def test_use_in_a_pool_that_shares_no_machines_counts_nothing():
    limits = {**pools(backend=1), **machines(fake=9)}
    limits["pool:b"] = Limit(LimitKind.POOL, "b", {"nodes": 9.0})
    queued = (
        QueuedJob(1, of(1), project_id=1),
        QueuedJob(2, of(1), project_id=2),
        QueuedJob(3, shape(1, "fake", pool="b"), project_id=1),
    )
    shares = {("pool:b", 1): Share(99.0), ("backend:local", 2): Share(1.0)}
    assert started(Snapshot(queued, limits=limits, shares=shares)) == [1, 3]


def test_an_unlimited_backend_is_not_shared():
    limits = pools(a=1, z=1)
    limits["backend:local"].caps.clear()
    queued = (QueuedJob(1, of(1, "a")), QueuedJob(2, of(1, "a")), QueuedJob(3, of(1, "z"), rank=1))
    assert started(Snapshot(queued, limits=limits)) == [1, 3]


def test_a_place_holds_against_jobs_of_other_pools_on_the_same_machines():
    running = (RunningJob(1, of(2, "a"), ends_s=2 * HOUR),)
    big = QueuedJob(2, of(4, "a"), rank=1)
    long = QueuedJob(3, of(1), duration_s=3 * HOUR)
    short = QueuedJob(4, of(1), duration_s=HOUR)
    limits = pools(running, backend=4, a=4)
    found = by_number(plan(Snapshot((big, long, short), running, limits)))
    assert found[4] == Start(4)
    assert found[3] == Wait(3, Behind(2))


def test_who_waits_for_its_pool_alone_holds_nothing_back_elsewhere():
    # It is unknown when its pool has free capacity; the backend has enough.
    running = (RunningJob(1, of(2, "a")),)
    queued = (QueuedJob(2, of(2, "a"), rank=9), QueuedJob(3, of(6)), QueuedJob(4, of(1, "z")))
    limits = pools(running, backend=10, a=2, z=1)
    found = by_number(plan(Snapshot(queued, running, limits)))
    assert (found[3], found[4]) == (Start(3), Start(4))


def test_each_pool_has_a_first_of_its_own_where_the_machines_of_both_are_enough():
    running = (RunningJob(1, of(2, "a")), RunningJob(2, of(2, "z")))
    queued = (QueuedJob(3, of(2, "a")), QueuedJob(4, of(2, "z")), QueuedJob(5, of(1, "z")))
    found = by_number(plan(Snapshot(queued, running, pools(running, backend=10, a=3, z=3))))
    assert isinstance(found[3], Wait)
    assert isinstance(found[3].cause, NoRoom)
    assert isinstance(found[4], Wait)
    assert isinstance(found[4].cause, NoRoom)
    assert found[5] == Wait(5, Behind(4))


@pytest.mark.feature("P5.4")
def test_no_victim_is_stopped_for_machines_that_the_first_job_of_another_pool_would_get():
    # Pool z would have capacity then, and the first job of pool a takes the backend's.
    running = (
        RunningJob(1, of(2, "a"), ends_s=HOUR),
        RunningJob(2, of(2, "z"), is_preemptible=True),
    )
    queued = (QueuedJob(3, of(3, "a"), rank=9), QueuedJob(4, of(3, "z"), rank=1))
    snapshot = Snapshot(
        queued,
        running,
        pools(running, backend=7, a=4, z=4),
        preemption={"pool:a": BY_RANK, "pool:z": BY_RANK},
    )
    assert isinstance(by_number(plan(snapshot))[4], Wait)


@pytest.mark.feature("P5.4")
def test_a_claim_whose_machines_went_elsewhere_comes_before_no_job_of_a_higher_queue():
    running = (RunningJob(1, of(1)),)
    claiming, higher = QueuedJob(2, of(2), has_claim=True), QueuedJob(3, of(1), rank=1)
    assert started(Snapshot((claiming, higher), running, pools(running, backend=2))) == [3]
    leaving = (RunningJob(1, of(1), is_leaving=True),)
    assert started(Snapshot((claiming, higher), leaving, pools(leaving, backend=2))) == []


@pytest.mark.feature("P5.4")
def test_a_quota_that_the_urgent_job_needs_is_used_by_no_other_job_while_victims_wind_down():
    low = RunningJob(1, of(2, "gpus"), is_preemptible=True)
    limits = pools((low,), backend=9, gpus=2)
    limits["quota"] = Limit(LimitKind.PROJECT, "rl", {"nodes": 2.0})
    urgent = QueuedJob(9, shape(2, limits=("quota",), pool="gpus"), rank=1, project_id=1)
    later = QueuedJob(10, shape(1, limits=("quota",)), project_id=1)
    allowed = {"pool:gpus": BY_RANK}
    found = by_number(plan(Snapshot((urgent, later), (low,), limits, preemption=allowed)))
    assert isinstance(found[9], Preempt)
    assert isinstance(found[10], Wait)


def test_a_job_that_waits_endlessly_for_its_full_pool_blocks_no_job_on_the_rest_of_the_backend():
    endless = RunningJob(1, of(64, "full"))
    first = QueuedJob(2, of(64, "full"))
    others = tuple(QueuedJob(number, of(1, "free")) for number in range(3, 73))
    limits = pools((endless,), backend=127, full=64, free=64)
    starts = started(Snapshot((first, *others), (endless,), limits))
    assert starts == list(range(3, 66))
