"""Invariants of every plan: limits, whole gangs, reservations, preemption."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

HOUR = 3600.0
pytestmark = pytest.mark.feature("P5.1")


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw one backend, two pools, every kind of quota, running jobs, pools that reclaim."""
    limits: dict[str, Limit] = {}
    for key, kind in (
        ("backend:b", LimitKind.BACKEND),
        ("pool:a", LimitKind.POOL),
        ("pool:z", LimitKind.POOL),
        ("project:1", LimitKind.PROJECT),
        ("project:2", LimitKind.PROJECT),
        ("person:1", LimitKind.PERSON),
        ("queue:0", LimitKind.QUEUE),
        ("queue:1", LimitKind.QUEUE),
        ("group", LimitKind.GROUP),
    ):
        counted = draw(st.sets(st.sampled_from(["jobs", "nodes", "gpus:H100"]), max_size=3))
        caps = {what: float(draw(st.integers(0, 24))) for what in sorted(counted)}
        nominal = {"nodes": float(draw(st.integers(0, 6)))} if kind == LimitKind.PROJECT else {}
        limits[key] = Limit(kind, key, caps, nominal=nominal)

    def shape(project: int, person: int, rank: int) -> Shape:
        nodes, gpus = draw(st.integers(1, 6)), draw(st.sampled_from([0, 8]))
        pool = draw(st.sampled_from(["pool:a", "pool:z"]))
        keys = [f"project:{project}", f"queue:{rank}", pool, "backend:b"]
        keys += ["person:1"] if person == 1 else []
        keys += ["group"] if draw(st.booleans()) else []
        demand = (("jobs", 1.0), ("nodes", float(nodes)), ("gpus:H100", float(gpus * nodes)))
        return Shape(pool, "b", nodes, demand, tuple(keys), float(nodes))

    running = []
    for number in range(draw(st.integers(0, 4))):
        ends = draw(st.one_of(st.none(), st.floats(0, 10 * HOUR)))
        rank, may, leaves = draw(st.integers(0, 1)), draw(st.booleans()), draw(st.booleans())
        each = RunningJob(
            -number - 1,
            shape(1, 1, rank),
            ends,
            project_id=1,
            rank=rank,
            is_preemptible=may,
            is_leaving=leaves,
        )
        for key in each.shape.limits:
            limits[key].take(each.shape.demand)
        running.append(each)
    queued = []
    for number in range(draw(st.integers(0, 15))):
        project, person = draw(st.integers(1, 2)), draw(st.integers(1, 2))
        rank = draw(st.integers(0, 1))
        lasts = draw(st.one_of(st.none(), st.floats(60, 10 * HOUR)))
        queued.append(
            QueuedJob(
                number,
                shape(project, person, rank),
                draw(st.integers(0, 3)),
                project,
                person,
                rank,
                duration_s=lasts,
            )
        )
    taking_back = {
        pool: Preemption(reclaim=draw(st.booleans()), by_rank=draw(st.booleans()))
        for pool in ("pool:a", "pool:z")
    }
    return Snapshot(tuple(queued), tuple(running), limits, preemption=taking_back)


def starts(snapshot: Snapshot) -> list[QueuedJob]:
    by_number = {job.job_id: job for job in snapshot.queued}
    return [by_number[each.job_id] for each in plan(snapshot) if isinstance(each, Start)]


@given(snapshots())
def test_every_job_gets_exactly_one_decision(snapshot):
    assert sorted(each.job_id for each in plan(snapshot)) == [j.job_id for j in snapshot.queued]


@given(snapshots())
def test_no_limit_is_ever_exceeded_and_gangs_are_whole(snapshot):
    for key, limit in snapshot.limits.items():
        for what, cap in limit.caps.items():
            taken = sum(
                job.shape.amount(what) for job in starts(snapshot) if key in job.shape.limits
            )
            assert taken == 0 or limit.used.get(what, 0.0) + taken <= cap


@given(snapshots())
def test_a_plan_is_the_same_each_time_and_leaves_what_it_looked_at(snapshot):
    before = {key: dict(limit.used) for key, limit in snapshot.limits.items()}
    assert plan(snapshot) == plan(snapshot)
    assert {key: limit.used for key, limit in snapshot.limits.items()} == before


@given(snapshots())
def test_a_job_that_waits_for_room_really_has_none(snapshot):
    # Beside the jobs that the plan started, the first waiting job of each pool does not fit.
    left = {key: limit.copy() for key, limit in snapshot.limits.items()}
    for job in starts(snapshot):
        for key in job.shape.limits:
            left[key].take(job.shape.demand)
    jobs = {job.job_id: job for job in snapshot.queued}
    for each in plan(snapshot):
        if isinstance(each, Wait) and isinstance(each.cause, NoRoom):
            shape = jobs[each.job_id].shape
            assert any(left[key].lacks(shape.demand) for key in shape.limits)


@given(snapshots())
def test_a_blocked_job_learns_for_which_job(snapshot):
    jobs = {job.job_id: job for job in snapshot.queued}
    for each in plan(snapshot):
        if isinstance(each, Wait) and isinstance(each.cause, Behind):
            first, behind = jobs[each.cause.job_id].shape, jobs[each.job_id].shape
            shared = set(first.limits) & set(behind.limits)
            assert any(snapshot.limits[key].kind.is_machines for key in shared)


@given(snapshots())
def test_no_job_is_stopped_that_may_not_be_or_twice(snapshot):
    running = {each.job_id: each for each in snapshot.running}
    jobs = {job.job_id: job for job in snapshot.queued}
    seen: set[int] = set()
    for each in plan(snapshot):
        for number in each.victims if isinstance(each, Preempt) else ():
            victim, job = running[number], jobs[each.job_id]
            assert victim.is_preemptible
            assert not victim.is_leaving
            assert victim.shape.pool == job.shape.pool
            assert victim.rank < job.rank or victim.project_id != job.project_id
            assert number not in seen
            seen.add(number)
