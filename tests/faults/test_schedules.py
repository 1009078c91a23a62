"""Two workers and two beats at one schedule, one killed or hung: each of its times runs once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from jobs.backends.fake.backend import FakePlan
from tests.faults.fleet import Fleet
from tests.faults.held_points import HeldPoints
from tests.waiting import eventually

SCHEDULES = "/api/v1/projects/default/schedules"
POINTS = ("schedule.due", "schedule.stored", "submit.committed")
MISSED_MINUTES = 8
MINUTE = timedelta(minutes=1)
_names = itertools.count(1)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> HeldPoints:
    return HeldPoints(tmp_path_factory.mktemp("held") / "points")


@pytest.fixture(scope="module")
def fleet(points: HeldPoints) -> Iterator[Fleet]:
    made = Fleet(size=2, MPORTAL_CRASH_POINTS=str(points.directory))
    try:
        made.fake.set_plan(FakePlan(run_s=0.1))
        made.start()
        yield made
    finally:
        points.let_go()
        made.close()


@pytest.fixture(autouse=True)
def well(fleet: Fleet, points: HeldPoints) -> Iterator[None]:
    """Restore the fleet afterwards: all processes live, and no schedule is due any more."""
    yield
    points.let_go()
    fleet.revive()
    fleet.query("UPDATE jobs_schedule SET paused = true, next_at = NULL RETURNING id")


def make_minutely(fleet: Fleet) -> str:
    """Create a schedule of every minute, whose times of the last minutes were not processed."""
    name = f"minutely-{next(_names)}"
    body = {"name": name, "cron": "* * * * *", "overlap": "allow", "catch_up": "all",
            "spec": {"name": name, "run": "not run"}}  # fmt: skip
    with fleet.client() as client:
        made = client.post(SCHEDULES, json=body)
        assert made.status_code == 201, made.text
    fleet.query(
        f"UPDATE jobs_schedule SET next_at = next_at - interval '{MISSED_MINUTES} minutes' "
        f"WHERE name = '{name}' RETURNING id"
    )
    return name


def slots(fleet: Fleet, name: str) -> list[datetime]:
    """List the times that were submitted, each with a job of its own, in order."""
    rows = fleet.query(
        "SELECT slot, job_id FROM jobs_schedulerun JOIN jobs_schedule s ON s.id = schedule_id "
        f"WHERE s.name = '{name}' AND outcome = 'submitted' ORDER BY slot"
    )
    assert len({job for _, job in rows} - {None}) == len(rows)
    return [slot for slot, _ in rows]


def assert_each_once(fleet: Fleet, name: str) -> None:
    """Check that no time is left out or doubled, and that there are no other jobs."""
    assert slots(fleet, name)
    # In one statement, of one moment: the next minute may begin meanwhile.
    ((done, jobs, next_at),) = fleet.query(
        "SELECT (SELECT array_agg(slot ORDER BY slot) FROM jobs_schedulerun"
        "        WHERE schedule_id = s.id AND outcome = 'submitted'), "
        f"(SELECT count(*) FROM jobs_job WHERE name = '{name}'), next_at "
        f"FROM jobs_schedule s WHERE name = '{name}'"
    )
    assert done == [done[0] + n * MINUTE for n in range(len(done))]
    assert jobs == len(done)
    assert next_at == done[-1] + MINUTE


def is_caught_up(fleet: Fleet, name: str) -> bool:
    return len(slots(fleet, name)) >= MISSED_MINUTES


@pytest.mark.feature("P9.2")
def test_two_of_each_submit_every_time_once(fleet):
    names = [make_minutely(fleet) for _ in range(5)]
    for name in names:
        assert eventually(lambda name=name: is_caught_up(fleet, name), timeout_s=40), fleet.logs()
        assert_each_once(fleet, name)


@pytest.mark.feature("P9.2")
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "hangs"])
def test_a_worker_that_ends_in_the_middle_of_a_time_loses_and_doubles_none(
    fleet, points, point, is_killed
):
    points.hold(point)
    name = make_minutely(fleet)
    holder = points.wait_for(point)
    worker = next(each for each in fleet.members.values() if each.pid == holder)
    worker.kill() if is_killed else worker.stop()
    points.let_go()
    assert eventually(lambda: is_caught_up(fleet, name), timeout_s=60), fleet.logs()
    assert_each_once(fleet, name)
    fleet.revive()
    # The process that hung continues from where it was stopped.
    other = make_minutely(fleet)
    assert eventually(lambda: is_caught_up(fleet, other), timeout_s=60), fleet.logs()
    for each in (name, other):
        assert_each_once(fleet, each)
