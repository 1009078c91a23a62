"""Workers killed where a cluster is kept, taken again and stopped: real processes, fake nodes.

Whichever worker dies, and wherever, a job runs once, no machines are made beside those that were
kept, and in the end there are none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.fake.backend import FakePlan
from tests.faults.fleet import Fleet
from tests.faults.held_points import HeldPoints
from tests.waiting import eventually

IDLE = {"minutes": 5, "then": "stop", "down_after": 60}
CLUSTERS = "/api/v1/projects/default/clusters"
_names = itertools.count(1)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> HeldPoints:
    folder: Path = tmp_path_factory.mktemp("held") / "points"
    return HeldPoints(folder)


@pytest.fixture(scope="module")
def fleet(points: HeldPoints) -> Iterator[Fleet]:
    made = Fleet(size=1, MPORTAL_CRASH_POINTS=str(points.directory))
    try:
        made.fake.set_plan(FakePlan(run_s=0.2, lines=("hello",)))
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def clean(fleet: Fleet, points: HeldPoints) -> Iterator[None]:
    """Restore the fleet afterwards: all processes live, and there are no machines any more."""
    yield
    points.let_go()
    fleet.revive()
    for (name,) in fleet.query("SELECT name FROM jobs_cluster WHERE status <> 'GONE'"):
        with fleet.client() as client:
            assert client.post(f"{CLUSTERS}/{name}/actions/down").status_code == 202
    assert eventually(lambda: fleet.fake.existing() == [], timeout_s=30), fleet.logs()
    assert eventually(lambda: statuses(fleet) <= {"GONE"}, timeout_s=30), fleet.logs()


def submit(fleet: Fleet) -> int:
    name = f"kept-{next(_names)}"
    portal = {"reuse": True, "idle": IDLE}
    return fleet.submit(name, name=name, run="not run", portal=portal)


def statuses(fleet: Fleet) -> set[str]:
    return {row[0] for row in fleet.query("SELECT status FROM jobs_cluster")}


def ends_well(fleet: Fleet, job_id: int) -> str:
    """Wait for the end of a job and return its cluster's name."""
    assert fleet.wait_for_end(job_id)["status"] == "SUCCEEDED"
    assert fleet.lines(job_id) == ["hello"]
    attempts = fleet.get(f"/{job_id}/attempts")["results"]
    assert len(attempts) == 1
    return str(attempts[0]["cluster_name"])


def strike(fleet: Fleet, points: HeldPoints, point: str) -> None:
    """Kill the worker that is held at the point, and start another."""
    assert points.wait_for(point) == fleet["worker-0"].pid
    fleet["worker-0"].kill()
    points.let_go()
    fleet.revive()


def let_idle_time_pass(fleet: Fleet) -> None:
    fleet.query(
        "UPDATE jobs_cluster SET idle_since = idle_since - interval '6 minutes' "
        "WHERE idle_since IS NOT NULL RETURNING name"
    )


def waits(fleet: Fleet, name: str) -> bool:
    rows = fleet.query(
        f"SELECT idle_since IS NOT NULL AND release_requested_at IS NULL "
        f"FROM jobs_cluster WHERE name = '{name}'"
    )
    return rows == [(True,)]


def test_a_worker_killed_when_it_has_kept_a_cluster_leaves_it_to_the_next_job(fleet, points):
    points.hold("cluster.kept")
    first = submit(fleet)
    strike(fleet, points, "cluster.kept")
    name = ends_well(fleet, first)
    assert waits(fleet, name)
    assert ends_well(fleet, submit(fleet)) == name
    assert [seen.name for seen in fleet.fake.existing()] == [name]


def test_a_worker_killed_when_a_job_has_taken_a_cluster_starts_the_job_there_once(fleet, points):
    name = ends_well(fleet, submit(fleet))
    points.hold("cluster.taken")
    second = submit(fleet)
    strike(fleet, points, "cluster.taken")
    assert ends_well(fleet, second) == name
    launches = [call for call in fleet.fake.calls() if call == ("launch", name)]
    assert len(launches) == 2


@pytest.mark.feature("P6.3")
@pytest.mark.parametrize("point", ["autostop.begun", "autostop.asked"])
def test_a_worker_killed_while_machines_are_switched_off_leaves_them_off_and_kept(
    fleet, points, point
):
    name = ends_well(fleet, submit(fleet))
    assert eventually(lambda: waits(fleet, name), timeout_s=10)
    points.hold(point)
    let_idle_time_pass(fleet)
    strike(fleet, points, point)
    assert eventually(lambda: "STOPPED" in statuses(fleet), timeout_s=30), fleet.logs()
    assert [(seen.name, seen.status) for seen in fleet.fake.existing()] == [(name, "STOPPED")]
    assert ends_well(fleet, submit(fleet)) == name
