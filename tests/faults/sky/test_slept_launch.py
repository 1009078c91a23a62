"""A worker that sleeps from just before a launch until long after its job's end, and goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import victims
from tests.faults.fleet import Fleet
from tests.faults.held_points import HeldPoints
from tests.faults.sky.ground import RESOURCES
from tests.sky_stub.process import StubProcess
from tests.waiting import eventually

PATIENCE_S = 150
# A sweep is due every minute, which is too long to wait.
SWEEP = """
import django
django.setup()
from jobs.background.hints import wake
wake("orphans")
"""


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[StubProcess]:
    stub = StubProcess(tmp_path / "stub")
    yield stub
    stub.close()


@pytest.fixture
def points(tmp_path: Path) -> HeldPoints:
    return HeldPoints(tmp_path / "points")


@pytest.fixture
def fleet(stub: StubProcess, points: HeldPoints) -> Iterator[Fleet]:
    """Start two workers: one sleeps, the other does the work."""
    made = Fleet(
        size=2,
        MPORTAL_CRASH_POINTS=str(points.directory),
        MPORTAL_SKYPILOT="on",
        MPORTAL_SKYPILOT_ENDPOINT=stub.url,
        MPORTAL_ORPHAN_GRACE_MINUTES="0",
    )
    try:
        made.start()
        yield made
    finally:
        made.close()


def submit(fleet: Fleet, points: HeldPoints) -> tuple[int, list[int]]:
    """Submit a job; return it and the worker that is held before its launch, with its child.

    The child requests the launch from SkyPilot.
    """
    points.hold("launch.staged")
    job = fleet.submit("slept", name="slept", run="exec sleep 600", resources=RESOURCES)
    worker = points.wait_for("launch.staged", timeout_s=PATIENCE_S)
    return job, [worker, *victims.children_of(worker)]


def let_the_job_end(fleet: Fleet, job: int) -> None:
    """Cancel the job; the other worker ensures that nothing is left."""
    fleet.cancel(job)
    assert fleet.wait_for_end(job, timeout_s=PATIENCE_S)["status"] == "CANCELLED"
    gone = "SELECT count(*) FROM jobs_cluster WHERE status <> 'GONE'"
    assert eventually(lambda: fleet.query(gone) == [(0,)], timeout_s=PATIENCE_S), fleet.logs()


@pytest.mark.smoke
def test_a_launch_that_was_on_its_way_while_its_cluster_was_taken_down_is_swept_up(
    fleet: Fleet, points: HeldPoints, stub: StubProcess
) -> None:
    job, sleepers = submit(fleet, points)
    # The folder goes first, and its answer leaves time to fall asleep before the launch itself.
    stub.strike("late", "blob", seconds=20)
    points.let_go()
    assert eventually(lambda: stub.witness.events("fault", do="late"), timeout_s=PATIENCE_S)
    victims.send(sleepers, signal.SIGSTOP)
    assert stub.witness.events("launch_begun") == []
    let_the_job_end(fleet, job)
    victims.send(sleepers, signal.SIGCONT)
    assert eventually(lambda: stub.witness.events("launch_begun"), timeout_s=PATIENCE_S)
    fleet.run_python(SWEEP)
    swept = eventually(lambda: stub.witness.events("gone", why="down"), timeout_s=PATIENCE_S)
    assert swept, fleet.logs()
    assert eventually(lambda: stub.cloud.names() == [], timeout_s=PATIENCE_S), fleet.logs()
    verbs = [event["verb"] for event in fleet.get(f"/{job}/events", limit=200)["results"]]
    assert "orphan" in verbs
    assert fleet.job(job)["status"] == "CANCELLED"


def test_a_launch_that_was_not_sent_yet_when_its_cluster_was_taken_down_is_never_sent(
    fleet: Fleet, points: HeldPoints, stub: StubProcess
) -> None:
    job, sleepers = submit(fleet, points)
    victims.send(sleepers, signal.SIGSTOP)
    points.let_go()
    let_the_job_end(fleet, job)
    victims.send(sleepers, signal.SIGCONT)
    # It takes work again, so it is through with the launch.
    other = {"worker-0": "worker-1", "worker-1": "worker-0"}
    awake = next(name for name in other if fleet[name].pid == sleepers[0])
    os.kill(fleet[other[awake]].pid, signal.SIGKILL)
    ends = fleet.submit("after", name="after", run="true", resources={"infra": "local"})
    assert fleet.wait_for_end(ends, timeout_s=PATIENCE_S)["status"] == "SUCCEEDED"
    assert stub.witness.events("launch_begun") == []
    assert stub.cloud.names() == []
