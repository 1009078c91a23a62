"""Invariants between two plans where jobs are preempted, on pools that share a backend."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.scheduling.limits import Limit, LimitKind, Shape
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import (
    Preempt,
    Preemption,
    QueuedJob,
    RunningJob,
    Share,
    Snapshot,
    Start,
)

HOUR = 3600.0
PLACES = ("pool:a", "pool:z", "backend:b")
pytestmark = [pytest.mark.feature("P5.1"), pytest.mark.feature("P5.4")]


def shape_of(place: str, project: int, nodes: int) -> Shape:
    demand = (("jobs", 1.0), ("nodes", float(nodes)))
    keys = dict.fromkeys([f"project:{project}", place, "backend:b"])
    return Shape(place, "b", nodes, demand, tuple(keys), float(nodes))


def counted(limits: dict[str, Limit], running: Iterable[RunningJob]) -> dict[str, Limit]:
    """Return `limits` with the usage of these jobs, and nothing else."""
    found = {key: replace(limit, used={}) for key, limit in limits.items()}
    for each in running:
        for key in each.shape.limits:
            if found[key].kind.is_machines or each.counts_in_quotas:
                found[key].take(each.shape.demand)
    return found


shapes = st.builds(shape_of, st.sampled_from(PLACES), st.integers(1, 3), st.integers(1, 4))
moments = st.one_of(st.none(), st.floats(1, 10 * HOUR))


@st.composite
def holders(draw: st.DrawFn) -> list[RunningJob]:
    """Draw running jobs, some of which are preemptible, and clusters without a job."""
    found = []
    for number in range(-draw(st.integers(2, 8)), 0):
        is_left = draw(st.integers(0, 4)) == 0
        shape = draw(shapes)
        found.append(
            RunningJob(
                number,
                shape,
                draw(moments),
                began_s=float(draw(st.integers(0, 3))),
                project_id=int(shape.limits[0].removeprefix("project:")),
                rank=draw(st.sampled_from([0, 0, 0, 1])),
                is_preemptible=not is_left and draw(st.integers(0, 5)) > 0,
                counts_in_quotas=not is_left,
            )
        )
    return found


@st.composite
def waiting(draw: st.DrawFn) -> list[QueuedJob]:
    """Draw queued jobs of three projects and queues."""
    found = []
    for number in range(1, 1 + draw(st.integers(1, 10))):
        shape = draw(shapes)
        project = int(shape.limits[0].removeprefix("project:"))
        found.append(
            QueuedJob(
                number,
                shape,
                draw(st.integers(0, 2)),
                project,
                draw(st.integers(1, 2)),
                draw(st.integers(0, 2)),
                duration_s=draw(moments),
            )
        )
    return found


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    running = draw(holders())
    queued = draw(waiting())
    total = sum(each.shape.num_nodes for each in running)
    limits = {"backend:b": Limit(LimitKind.BACKEND, "b", {"nodes": float(max(4, total))})}
    limits["backend:b"].caps["nodes"] += draw(st.sampled_from([0, 1, 2, 4, 8]))
    for pool in ("pool:a", "pool:z"):
        its = sum(each.shape.num_nodes for each in running if each.shape.pool == pool)
        cap = float(max(4, its) + draw(st.sampled_from([0, 0, 0, 1, 2, 9])))
        limits[pool] = Limit(LimitKind.POOL, pool, {"nodes": cap})
    for project in (1, 2, 3):
        own = {"nodes": float(draw(st.integers(0, 6)))}
        cap = float(draw(st.sampled_from([9, 99, 99])))
        limits[f"project:{project}"] = Limit(LimitKind.PROJECT, "p", {"nodes": cap}, nominal=own)
    ways = [(True, True), (False, True), (True, False), (False, False)]
    allowed = st.sampled_from([Preemption(*way) for way in ways])
    shares = st.builds(Share, st.floats(0, 50), st.sampled_from([1.0, 2.0]))
    return Snapshot(
        tuple(queued),
        tuple(running),
        counted(limits, running),
        shares={(place, project): draw(shares) for place in PLACES for project in (1, 2, 3)},
        preemption={"pool:a": draw(allowed), "pool:z": draw(allowed)},
    )


def outcome(snapshot: Snapshot) -> tuple[set[int], list[Preempt]]:
    """Return the jobs that start, and the preemptions."""
    decisions = plan(snapshot)
    starts = {each.job_id for each in decisions if isinstance(each, Start)}
    return starts, [each for each in decisions if isinstance(each, Preempt)]


def afterwards(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot once the plan was carried out and all victims have left."""
    starts, preempts = outcome(snapshot)
    victims = {number: each.job_id for each in preempts for number in each.victims}
    staying = [each for each in snapshot.running if each.job_id not in victims]
    began = [
        RunningJob(j.job_id, j.shape, j.duration_s) for j in snapshot.queued if j.job_id in starts
    ]
    claiming = {each.job_id for each in preempts}
    again = [
        QueuedJob(
            1000 - each.job_id,
            each.shape,
            project_id=each.project_id,
            rank=each.rank,
            stopped_for=victims[each.job_id],
        )
        for each in snapshot.running
        if each.job_id in victims
    ]
    still = [
        replace(each, has_claim=each.job_id in claiming)
        for each in snapshot.queued
        if each.job_id not in starts
    ]
    left = [replace(each, is_preemptible=False) for each in staying]
    return replace(
        snapshot,
        queued=(*still, *again),
        running=(*left, *began),
        limits=counted(dict(snapshot.limits), [*staying, *began]),
    )


@settings(max_examples=400, deadline=None)
@given(snapshots())
def test_a_job_with_victims_starts_in_the_next_plan(snapshot):
    _, preempts = outcome(snapshot)
    starts, _ = outcome(afterwards(snapshot))
    assert {each.job_id for each in preempts} <= starts


@settings(max_examples=150, deadline=None)
@given(snapshots())
def test_no_victim_of_a_plan_could_have_been_spared(snapshot):
    # Without one of them, the job for which they are stopped would lack machines.
    jobs = {each.job_id: each for each in snapshot.queued}
    staying = list(snapshot.running)
    for decision in plan(snapshot):
        if isinstance(decision, Start):
            staying.append(RunningJob(decision.job_id, jobs[decision.job_id].shape))
        if isinstance(decision, Preempt):
            gone = [each for each in staying if each.job_id in decision.victims]
            staying = [each for each in staying if each not in gone]
            assert not lacks(decision, jobs, snapshot, staying)
            for spared in gone:
                assert lacks(decision, jobs, snapshot, [*staying, spared])


def lacks(
    preempt: Preempt, jobs: dict[int, QueuedJob], snapshot: Snapshot, staying: list[RunningJob]
) -> bool:
    limits, shape = counted(dict(snapshot.limits), staying), jobs[preempt.job_id].shape
    rooms = (limits[key] for key in shape.limits if limits[key].kind.is_machines)
    return any(room.lacks(shape.demand) for room in rooms)


@settings(max_examples=150, deadline=None)
@given(snapshots())
def test_no_limit_is_exceeded_with_jobs_that_are_stopped(snapshot):
    starts, _ = outcome(snapshot)
    for key, limit in snapshot.limits.items():
        for what, cap in limit.caps.items():
            taken = sum(
                job.shape.amount(what)
                for job in snapshot.queued
                if job.job_id in starts and key in job.shape.limits
            )
            assert taken == 0 or limit.used.get(what, 0.0) + taken <= cap
