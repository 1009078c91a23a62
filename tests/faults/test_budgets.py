"""Workers killed in the middle of a budget's end: real processes, fake nodes at a real price.

Whichever process dies, and wherever, each threshold is reported once and all that runs is stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.fake.backend import FakePlan
from tests.faults.fleet import Fleet
from tests.faults.held_points import HeldPoints
from tests.waiting import eventually

BUDGET = "/api/v1/projects/default/budget"


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> HeldPoints:
    folder: Path = tmp_path_factory.mktemp("held") / "points"
    return HeldPoints(folder)


@pytest.fixture(scope="module")
def fleet(points: HeldPoints) -> Iterator[Fleet]:
    made = Fleet(size=2, MPORTAL_CRASH_POINTS=str(points.directory))
    try:
        made.fake.set_plan(FakePlan(lines=("hello",)))
        # A hundred dollars a second: it costs something by the first bill.
        made.fake.set_price("360000")
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def clean(fleet: Fleet, points: HeldPoints) -> Iterator[None]:
    """Restore the fleet afterwards: all processes live, no budgets, no machines."""
    yield
    points.let_go()
    fleet.revive()
    put(fleet, usd=None)
    for (job_id,) in fleet.query("SELECT id FROM jobs_job WHERE ended_at IS NULL"):
        fleet.cancel(job_id)
    assert eventually(lambda: fleet.fake.existing() == [], timeout_s=30), fleet.logs()


def put(fleet: Fleet, **budget: object) -> None:
    with fleet.client() as client:
        answer = client.put(BUDGET, json=budget)
    assert answer.status_code == 200, answer.text


def running(fleet: Fleet, name: str) -> int:
    job_id = fleet.submit(name, name=name, run="not run")
    assert eventually(lambda: fleet.job(job_id)["status"] == "RUNNING", timeout_s=30)
    return job_id


def kill_holder(fleet: Fleet, points: HeldPoints, point: str) -> None:
    number = points.wait_for(point)
    victim = next(each for each in fleet.members.values() if each.pid == number)
    victim.kill()
    points.let_go()
    fleet.revive()


@pytest.mark.feature("P5.6")
@pytest.mark.parametrize("point", ["budget.noted", "budget.stopped"])
def test_a_worker_killed_while_a_budget_ends_leaves_nothing_running_and_reports_once(
    fleet, points, point
):
    jobs = [running(fleet, f"{point}-{number}") for number in (1, 2)]
    points.hold(point)
    put(fleet, usd="0.01", on_spent="stop")
    kill_holder(fleet, points, point)
    for job_id in jobs:
        ended = fleet.wait_for_end(job_id)
        assert (ended["status"], ended["stop_reason"]) == ("FAILED", "BUDGET")
    notices = fleet.query("SELECT threshold FROM jobs_budgetnotice ORDER BY threshold")
    assert [threshold for (threshold,) in notices] == [50, 80, 100]
    waiting = fleet.submit(f"{point}-late", name="late", run="not run")
    assert eventually(lambda: fleet.job(waiting)["wait_reason"] == "BUDGET", timeout_s=20)
    put(fleet, usd="10000000", on_spent="stop")
    assert eventually(lambda: fleet.job(waiting)["status"] != "QUEUED", timeout_s=20)
