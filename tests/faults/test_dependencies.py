"""Workers killed between the end of a job and the start of one that waits for it; two workers.

Whichever process dies, and wherever, a dependant starts exactly once and is never forgotten.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.fake.backend import FakePlan
from tests.faults.fleet import Fleet
from tests.faults.held_points import HeldPoints

_names = itertools.count(1)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> HeldPoints:
    folder: Path = tmp_path_factory.mktemp("held") / "points"
    return HeldPoints(folder)


@pytest.fixture(scope="module")
def running_fleet(points: HeldPoints) -> Iterator[Fleet]:
    made = Fleet(size=2, MPORTAL_CRASH_POINTS=str(points.directory))
    try:
        made.fake.set_plan(FakePlan(run_s=0.2, lines=("hello",)))
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def fleet(running_fleet: Fleet, points: HeldPoints) -> Iterator[Fleet]:
    yield running_fleet
    points.let_go()
    running_fleet.revive()


def submit(fleet: Fleet, *needs: int, **portal) -> int:
    name = f"dag-{next(_names)}"
    portal = {**({"depends_on": list(needs)} if needs else {}), **portal}
    return fleet.submit(name, name=name, run="not run", portal=portal)


def ran_once(fleet: Fleet, job_id: int) -> None:
    job = fleet.wait_for_end(job_id)
    assert (job["status"], job["attempt_count"]) == ("SUCCEEDED", 1), fleet.logs()
    assert fleet.lines(job_id) == ["hello"]


def strike(fleet: Fleet, points: HeldPoints, point: str) -> None:
    """Kill the process that is held at the point; the other one of its kind lives."""
    holder = points.wait_for(point)
    name = next(name for name, each in fleet.members.items() if each.pid == holder)
    fleet[name].kill()
    points.let_go()


@pytest.mark.feature("S2.6")
@pytest.mark.parametrize(
    "point", ["verdict.taken", "dependency.settled", "plan.decided", "plan.started"]
)
def test_a_dependant_starts_once_whichever_process_dies_before_its_start(fleet, points, point):
    first = submit(fleet, hold=True)
    last = submit(fleet, submit(fleet, first))
    if point in {"verdict.taken", "dependency.settled"}:
        points.hold(point)
        release(fleet, first)
    else:
        release(fleet, first)
        fleet.wait_for_end(first)
        points.hold(point)
    strike(fleet, points, point)
    for job_id in (first, first + 1, last):
        ran_once(fleet, job_id)


@pytest.mark.feature("S2.6")
def test_two_that_end_at_once_start_what_waits_for_both_once(fleet):
    for _ in range(5):
        ends = [submit(fleet) for _ in range(4)]
        last = submit(fleet, *ends)
        for job_id in (*ends, last):
            ran_once(fleet, job_id)


@pytest.mark.feature("S2.6")
def test_a_worker_that_dies_over_a_failure_leaves_no_dependant_behind(fleet, points):
    name = f"fails-{next(_names)}"
    fleet.fake.set_plan(FakePlan(run_s=0.2, exit_code=3), name)
    points.hold("dependency.settled")
    failing = fleet.submit(name, name=name, run="not run")
    middle = submit(fleet, failing)
    last = submit(fleet, middle)
    strike(fleet, points, "dependency.settled")
    for job_id in (middle, last):
        job = fleet.wait_for_end(job_id)
        assert (job["status"], job["stop_reason"], job["attempt_count"]) == (
            "FAILED",
            "DEPENDENCY",
            0,
        )


def release(fleet: Fleet, job_id: int) -> None:
    with fleet.client() as client:
        path = f"/api/v1/projects/default/jobs/{job_id}/actions/release"
        assert client.post(path).status_code == 200
