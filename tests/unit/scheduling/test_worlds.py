"""Invariants when one plan after the other is carried out: limits, and expected starts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.scheduling.snapshot import Preemption
from tests.unit.scheduling.worlds import Asks, World

HOUR = 3600.0
URGENT = 9  # the rank above all others
pytestmark = [pytest.mark.feature("P5.1"), pytest.mark.feature("S2.8")]


@st.composite
def jobs(draw: st.DrawFn, *, may_name: bool) -> list[Asks]:
    """Draw jobs of three projects; many keep their cluster, some name one, which may have ended."""
    found, at_s = [], 0.0
    for number in range(1, 1 + draw(st.integers(2, 14))):
        at_s += draw(st.sampled_from([0.0, 0.0, 0.2, 0.5, 1.0])) * HOUR
        most_s = draw(st.sampled_from([0.5, 1.0, 2.0, 4.0])) * HOUR
        keeps_s = draw(st.sampled_from([None, 0.5, 0.5, 3.0]))
        names = ""
        if may_name and number > 1 and draw(st.integers(0, 3)) == 0:
            names = f"c{draw(st.integers(1, number - 1))}"
        found.append(
            Asks(
                number,
                at_s,
                project=draw(st.integers(1, 3)),
                pool=draw(st.sampled_from(["pool:a", "pool:a", "pool:z"])),
                nodes=draw(st.integers(1, 3)),
                runs_s=most_s * draw(st.sampled_from([0.1, 0.6, 1.0])),
                most_s=most_s,
                rank=draw(st.sampled_from([0, 0, 1])),
                keeps_s=None if keeps_s is None else keeps_s * HOUR,
                names=names,
                is_preemptible=draw(st.booleans()),
            )
        )
    return found


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw two pools on one backend, and quotas of projects, also of money."""
    nodes = draw(st.integers(3, 8))
    caps: dict[str, dict[str, float]] = {"backend:b": {"nodes": float(nodes)}}
    for pool in ("pool:a", "pool:z"):
        caps[pool] = {"nodes": float(draw(st.integers(3, max(3, nodes))))}
    for project in (1, 2, 3):
        counted = draw(st.sampled_from(["jobs", "nodes", "usd_per_hour"]))
        caps[f"project:{project}"] = {counted: float(draw(st.sampled_from([2, 3, 5, 99])))}
    caps["project:4"] = {}
    ways = [(False, False), (False, False), (False, True), (True, True)]
    allowed = st.sampled_from([Preemption(*way) for way in ways])
    return World(
        caps,
        {"pool:a": draw(allowed), "pool:z": draw(allowed)},
        patience_s=draw(st.sampled_from([0.0, 2 * HOUR, 24 * HOUR])),
        dearer=draw(st.sampled_from([1.0, 1.0, 1.7])),
        switches_off=draw(st.booleans()),
        ending_s=draw(st.sampled_from([0.0, 0.2 * HOUR])),
    )


@settings(max_examples=200, deadline=None)
@given(worlds(), jobs(may_name=True))
def test_plan_after_plan_no_limit_is_exceeded_and_no_cluster_is_taken_twice(world, jobs):
    world.play(jobs)


@settings(max_examples=150, deadline=None)
@given(worlds(), jobs(may_name=False))
def test_every_job_that_fits_has_started_once_all_others_have_ended(world, jobs):
    world.play(jobs)
    assert [job.number for job in world.queued.values() if world.fits_at_all(job)] == []


def test_jobs_that_follow_each_other_on_a_warm_cluster_do_not_pass_the_first_who_waits():
    # Each job takes all machines for an hour, and is submitted while the one before it runs.
    world = World({"backend:b": {"nodes": 2.0}, "pool:a": {}, "project:1": {}, "project:2": {}})
    following = [
        Asks(number, (number - 2) * HOUR, 1, "pool:a", 2, HOUR, HOUR, keeps_s=HOUR)
        for number in range(2, 40)
    ]
    first = Asks(1, 0.5 * HOUR, 2, "pool:a", 2, HOUR, HOUR)
    world.play([*following, first])
    assert world.started_s[first.number] == HOUR


@settings(max_examples=300, deadline=None)
@given(worlds(), jobs(may_name=False), st.data())
def test_the_first_of_the_highest_queue_starts_by_its_expected_start(world, jobs, data):
    # Later jobs may keep their cluster, reuse one, or have one started again.
    world.ending_s = 0.0
    at_s = data.draw(st.sampled_from([job.at_s for job in jobs])) + 0.1 * HOUR
    pool = data.draw(st.sampled_from(["pool:a", "pool:z"]))
    urgent = Asks(
        99,
        at_s,
        project=4,
        pool=pool,
        nodes=data.draw(st.integers(1, int(world.caps[pool]["nodes"]))),
        runs_s=HOUR,
        most_s=HOUR,
        rank=URGENT,
    )
    if urgent.nodes > world.caps["backend:b"]["nodes"]:
        return
    world.play([*jobs, urgent])
    reported_s = world.promised_s.get(urgent.number, at_s)
    assert reported_s is not None
    assert world.started_s[urgent.number] <= reported_s
