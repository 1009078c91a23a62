"""Scheduling passes that are killed or sleep in the middle: never more starts than fit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from jobs.backends.fake.backend import FakePlan
from tests.faults.fleet import JOBS, Fleet
from tests.faults.held_points import HeldPoints
from tests.waiting import eventually

NODES = 2
_names = itertools.count(1)
# From a cluster's row to its end, which is when its machines are taken.
OVERLAPS = """
SELECT max(together) FROM (
    SELECT (SELECT sum(b.num_nodes) FROM jobs_cluster b
            WHERE b.created_at <= a.created_at AND coalesce(b.gone_at, now()) > a.created_at
           ) AS together
    FROM jobs_cluster a
) counted
"""


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> HeldPoints:
    return HeldPoints(tmp_path_factory.mktemp("held") / "points")


@pytest.fixture(scope="module")
def fleet(points: HeldPoints) -> Iterator[Fleet]:
    """Start two webs, workers, beats and followers, with two available nodes."""
    fleet = Fleet(2, MPORTAL_CRASH_POINTS=str(points.directory))
    try:
        fleet.start()
        fleet.fake.set_capacity(NODES)
        fleet.fake.set_plan(FakePlan(lines=("one", "two"), line_every_s=0.2, run_s=1))
        yield fleet
    finally:
        points.let_go()
        fleet.close()


def submit(fleet: Fleet, count: int) -> list[int]:
    sizes = itertools.cycle((1, 2, 1))
    return [
        fleet.submit(f"fenced {next(_names)}", name="fenced", num_nodes=nodes, run="not run")
        for nodes, _ in zip(sizes, range(count), strict=False)
    ]


def all_end_well(fleet: Fleet, jobs: list[int]) -> None:
    """Check that each job ran once, and never more machines at once than exist."""
    for job in jobs:
        ended = fleet.wait_for_end(job, timeout_s=120)
        assert (ended["status"], ended["attempt"]) == ("SUCCEEDED", 1)
    [(together,)] = fleet.query(OVERLAPS)
    assert together <= NODES


def member_at(fleet: Fleet, pid: int) -> str:
    return next(name for name, each in fleet.members.items() if each.pid == pid)


@pytest.mark.feature("P5.1")
@pytest.mark.parametrize(
    "point", [pytest.param("plan.decided", marks=pytest.mark.smoke), "plan.started"]
)
def test_a_pass_that_is_killed_in_the_middle_leaves_nothing_started_twice(fleet, points, point):
    """Kill both workers in turn; beats and the other worker go on planning meanwhile."""
    points.hold(point)
    jobs = submit(fleet, 6)
    for _ in range(2):
        name = member_at(fleet, points.wait_for(point))
        fleet[name].kill()
        points.let_go()
        fleet.revive()
        points.hold(point)
    points.let_go()
    all_end_well(fleet, jobs)


@pytest.mark.feature("P5.1")
def test_a_pass_that_slept_while_others_were_made_starts_nothing_when_it_wakes_up(fleet, points):
    """Stop a pass after it decided for the first job, until the second has all machines."""
    fleet.fake.set_plan(FakePlan(run_s=6), "fenced")
    points.hold("plan.decided")
    first, second = submit(fleet, 2)
    name = member_at(fleet, points.wait_for("plan.decided"))
    fleet[name].stop()
    with fleet.client() as client:
        path = f"{JOBS}/{first}/actions/prioritize"
        client.post(path, json={"priority": 0}).raise_for_status()
    points.let_go()
    assert eventually(lambda: fleet.job(second)["status"] == "RUNNING", timeout_s=60)
    fleet[name].go_on()
    all_end_well(fleet, [first, second])
