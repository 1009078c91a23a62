"""Several places held at once: one for each limit that is full, each beside those before it."""

from __future__ import annotations

import pytest

from jobs.scheduling.causes import Behind, NoRoom
from jobs.scheduling.limits import Limit, LimitKind, Shape
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import (
    Preempt,
    Preemption,
    QueuedJob,
    RunningJob,
    Snapshot,
    Start,
    Wait,
)
from tests.unit.scheduling.shapes import shape

HOUR = 3600.0
pytestmark = pytest.mark.feature("P5.1")


def snapshot_of(
    nodes: int, queued: list[QueuedJob], running: list[RunningJob], **pools: int
) -> Snapshot:
    """Make a snapshot of a backend of so many nodes, and the pools on it."""
    limits = {"backend:local": Limit(LimitKind.BACKEND, "local", {"nodes": float(nodes)})}
    for name, most in pools.items():
        limits[f"pool:{name}"] = Limit(LimitKind.POOL, name, {"nodes": float(most)})
    for each in running:
        for key in each.shape.limits:
            limits[key].take(each.shape.demand)
    return Snapshot(tuple(queued), tuple(running), limits)


def job(number: int, nodes: int, pool: str = "", **asks) -> QueuedJob:
    return QueuedJob(number, shape(nodes, pool=pool), **asks)


def runs(number: int, nodes: int, pool: str, hours: float) -> RunningJob:
    return RunningJob(number, shape(nodes, pool=pool), ends_s=hours * HOUR)


def test_the_second_place_is_held_beside_the_first():
    # When job 1 has its four nodes, there are not six for job 2 until two hours are over.
    queued = [job(1, 4, "a", rank=3), job(2, 6, rank=2), job(3, 2, rank=1)]
    running = [runs(-1, 4, "a", 1), runs(-2, 3, "z", 2)]
    first, second, third = plan(snapshot_of(11, queued, running, a=4, z=9))
    assert isinstance(first, Wait)
    assert isinstance(first.cause, NoRoom)
    assert first.cause.expected_s == HOUR
    assert isinstance(second, Wait)
    assert isinstance(second.cause, NoRoom)
    assert second.cause.expected_s == 2 * HOUR
    assert third == Wait(3, Behind(2))


def test_a_second_job_that_never_fits_beside_the_first_gets_no_expected_start():
    queued = [job(1, 3, "a", rank=2), job(2, 4, rank=1)]
    first, second = plan(snapshot_of(6, queued, [runs(-1, 3, "a", 1)], a=3))
    assert isinstance(first, Wait)
    assert isinstance(second, Wait)
    assert isinstance(second.cause, NoRoom)
    assert second.cause.expected_s is None


def test_a_full_pool_has_a_first_of_its_own_beside_that_of_the_backend():
    queued = [job(1, 5, "z", rank=3), job(2, 2, "a", rank=2), job(3, 1, "a", rank=1)]
    running = [RunningJob(-1, shape(3, pool="a")), runs(-2, 6, "z", 5)]
    first, second, third = plan(snapshot_of(12, queued, running, a=4, z=12))
    assert isinstance(first, Wait)
    assert isinstance(first.cause, NoRoom)
    assert isinstance(second, Wait)
    assert isinstance(second.cause, NoRoom)
    assert second.cause.place == "a"
    assert isinstance(third, Wait)
    assert isinstance(third.cause, Behind)


def test_others_of_its_pool_are_stopped_for_it_where_that_costs_the_backends_first_nothing():
    victim = RunningJob(-1, shape(2, pool="a"), is_preemptible=True)
    queued = [job(1, 4, "z", rank=3), job(2, 2, "a", rank=2)]
    running = [victim, runs(-2, 6, "z", 5)]
    snapshot = snapshot_of(10, queued, running, a=2, z=10)
    taking = Snapshot(
        snapshot.queued,
        snapshot.running,
        snapshot.limits,
        preemption={"pool:a": Preemption(by_rank=True)},
    )
    first, second = plan(taking)
    assert isinstance(first, Wait)
    assert isinstance(second, Preempt)
    assert second.victims == (-1,)


def test_whom_this_plan_starts_makes_no_older_job_of_its_project_give_way():
    """Project 3 has two nodes of its own, and runs two; with the one that starts it borrows."""

    def of(project: int, nodes: int) -> Shape:
        plain = shape(nodes, pool="a")
        demand, limits = plain.demand, (f"project:{project}", *plain.limits)
        return Shape(plain.pool, "local", nodes, demand, limits, float(nodes))

    old = RunningJob(7, of(3, 2), project_id=3, is_preemptible=True)
    queued = [
        QueuedJob(100, of(3, 2), project_id=3, rank=1, duration_s=HOUR),
        QueuedJob(101, of(1, 2), project_id=1, rank=1),
    ]
    limits = {
        "project:1": Limit(LimitKind.PROJECT, "1", {}, nominal={"nodes": 2.0}),
        "project:3": Limit(LimitKind.PROJECT, "3", {}, {"nodes": 2.0}, nominal={"nodes": 2.0}),
        "pool:a": Limit(LimitKind.POOL, "a", {"nodes": 4.0}, {"nodes": 2.0}),
        "backend:local": Limit(LimitKind.BACKEND, "local", {"nodes": 4.0}, {"nodes": 2.0}),
    }
    taking = {"pool:a": Preemption(reclaim=True)}
    start, wait = plan(Snapshot(tuple(queued), (old,), limits, preemption=taking))
    assert start == Start(100)
    assert isinstance(wait, Wait)
    assert isinstance(wait.cause, NoRoom)
