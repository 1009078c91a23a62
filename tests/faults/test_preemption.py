"""Workers killed while one job is preempted by another: real processes, fake nodes.

Whichever worker dies, and wherever, the victim is stopped once and queued again, never runs twice
at once, and both come to their end.
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

POOL = """
WITH pool AS (
    INSERT INTO jobs_pool
        (name, backend_name, caps, patience_s, half_life_s, reclaim, preempts_by_rank)
    VALUES ('one', 'fake', '{"nodes": 1}', 86400, 604800, false, true) RETURNING id
), low AS (
    UPDATE jobs_queue SET pool_id = (SELECT id FROM pool) WHERE name = 'default'
)
INSERT INTO jobs_queue (name, rank, pool_id, preemptible)
SELECT 'urgent', 10, id, false FROM pool RETURNING id
"""
COUNTERS = "SELECT failure_count, recovery_count FROM jobs_job"
OPEN_ATTEMPTS = "SELECT count(*) FROM jobs_attempt WHERE ended_at IS NULL"
_names = itertools.count(1)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> HeldPoints:
    folder: Path = tmp_path_factory.mktemp("held") / "points"
    return HeldPoints(folder)


@pytest.fixture(scope="module")
def fleet(points: HeldPoints) -> Iterator[Fleet]:
    made = Fleet(size=1, MPORTAL_CRASH_POINTS=str(points.directory))
    try:
        made.query(POOL)
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def all_live(fleet: Fleet, points: HeldPoints) -> Iterator[None]:
    yield
    points.let_go()
    fleet.revive()


def submit(fleet: Fleet, **portal: object) -> int:
    name = f"job-{next(_names)}"
    return fleet.submit(name, name=name, run="not run", portal=portal)


def is_in(fleet: Fleet, job_id: int, *statuses: str) -> bool:
    return fleet.job(job_id)["status"] in statuses


@pytest.mark.feature("P5.4")
@pytest.mark.parametrize(
    "point", ["plan.decided", "preempt.stopped", "stop.asking", "stop.asked", "preempt.queued"]
)
def test_a_worker_killed_while_a_job_is_preempted_leaves_it_queued_or_finished(
    fleet, points, point
):
    fleet.fake.set_plan(FakePlan())
    victim = submit(fleet, preemptible=True)
    assert eventually(lambda: is_in(fleet, victim, "RUNNING"), timeout_s=30), fleet.logs()
    # From now on what starts ends by itself; who runs already does not.
    fleet.fake.set_plan(FakePlan(run_s=0.5))
    points.hold(point)
    urgent = submit(fleet, queue="urgent")
    assert points.wait_for(point) == fleet["worker-0"].pid
    fleet["worker-0"].kill()
    points.let_go()
    fleet.revive()
    seen: list[int] = []

    def both_ended() -> bool:
        seen.append(fleet.query(OPEN_ATTEMPTS)[0][0])
        return all(is_in(fleet, each, "SUCCEEDED", "FAILED") for each in (urgent, victim))

    assert eventually(both_ended, timeout_s=60), fleet.logs()
    assert max(seen) <= 1
    ended = [fleet.job(each) for each in (victim, urgent)]
    assert [each["status"] for each in ended] == ["SUCCEEDED", "SUCCEEDED"]
    assert fleet.query(f"{COUNTERS} WHERE id = {victim}") == [(0, 0)]
    second, first = fleet.get(f"/{victim}/attempts")["results"]
    (between,) = fleet.get(f"/{urgent}/attempts")["results"]
    names = [each["cluster_name"] for each in (first, between, second)]
    launches = [name for verb, name in fleet.fake.calls() if verb == "launch" and name in names]
    assert launches == names
    assert first["stop_reason"] == "PREEMPTED"
