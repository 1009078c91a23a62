"""Connections to PostgreSQL break in the middle of anything; PostgreSQL itself goes and comes."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.faults.database_cuts import Cuts
from tests.faults.fleet import JOBS, Fleet
from tests.faults.fleet_jobs import assert_every_line_once, counting, short
from tests.faults.witness import Witness
from tests.waiting import eventually

SEED = 20261121
BACK_S = 10


@pytest.fixture
def witness() -> Iterator[Witness]:
    """Provide a witness of the living incarnations."""
    witness = Witness()
    yield witness
    witness.close()


@contextmanager
def started(fleet: Fleet) -> Iterator[Fleet]:
    """Start the fleet, and close it at the end."""
    try:
        fleet.start()
        yield fleet
    finally:
        fleet.close()


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Start one of each."""
    with started(Fleet(1)) as fleet:
        yield fleet


def submit_all(fleet: Fleet, witness: Witness, prefix: str) -> dict[int, int]:
    """Submit jobs with different endings, each twice under one key; return exit codes by id."""
    jobs = {}
    for code in (0, 3, 0, 4, 0):
        key, spec = f"{prefix} {len(jobs)}", counting(witness.port, 40, code)
        job_id = fleet.submit(key, **spec)
        assert fleet.submit(key, **spec) == job_id
        jobs[job_id] = code
    return jobs


def assert_all_end_right(fleet: Fleet, witness: Witness, jobs: dict[int, int]) -> None:
    for job_id, code in jobs.items():
        job = fleet.wait_for_end(job_id)
        assert (job["exit_code"], job["attempt"]) == (code, 1)
        assert_every_line_once(fleet.lines(job_id))
        assert len(witness.of(job_id)) == 1
    assert witness.doubles == []
    assert fleet.query("SELECT count(*) FROM jobs_job") == [(fleet.submitted,)]


def assert_transient_failures(answers: list[httpx.Response]) -> None:
    """Check that all answers are problem documents that state when to come back."""
    reported = {(each.status_code, each.headers["Content-Type"]) for each in answers}
    assert reported <= {(503, "application/problem+json")}, [each.text for each in answers]
    assert {each.json()["code"] for each in answers} <= {"database_unavailable"}
    assert all(each.headers["Retry-After"] for each in answers)


@pytest.mark.parametrize("mode", ["commit", "answer", "bytes"])
def test_connections_that_break_at_any_moment_lose_and_double_nothing(witness, mode):
    cuts = Cuts(mode, SEED)
    with started(Fleet(1, on_the_way=cuts.look)) as fleet:
        cuts.is_on = True
        jobs = submit_all(fleet, witness, "cut")
        cancelled = fleet.submit("cancelled", **counting(witness.port, 4000, 0))
        fleet.cancel(cancelled)
        assert eventually(lambda: cuts.made >= 5, timeout_s=60)
        assert fleet.wait_for_end(cancelled)["status"] == "CANCELLED"
        cuts.is_on = False
        assert_all_end_right(fleet, witness, jobs)
        assert_transient_failures(fleet.failures)


def test_sessions_that_an_administrator_ends_cost_nothing(fleet, witness):
    stop = threading.Event()
    ended: list[int] = []

    def end_sessions() -> None:
        moments = random.Random(SEED)
        while not stop.wait(moments.uniform(0.1, 1.0)):
            ended.append(fleet.end_sessions())

    thread = threading.Thread(target=end_sessions)
    thread.start()
    try:
        jobs = submit_all(fleet, witness, "ended")
        assert eventually(lambda: sum(ended) >= 30, timeout_s=60)
    finally:
        stop.set()
        thread.join()
    assert_all_end_right(fleet, witness, jobs)
    assert_transient_failures(fleet.failures)


def assert_database_loss_is_reported(fleet: Fleet) -> None:
    """Check that a lost database is reported without a long wait.

    Programs get a code, people plain text.
    """
    with fleet.client() as client:
        begun = time.monotonic()
        answer = client.get(JOBS)
        page = client.get("/", headers={"Cookie": "mportal_session=of-somebody-else"})
        again = client.get(JOBS)
        took_s = time.monotonic() - begun
    assert_transient_failures([answer, again])
    assert page.status_code == 503
    assert "The database does not respond" in page.text
    # The pool's queue lasts ten seconds; who comes after that is refused at once.
    assert took_s < 2 * BACK_S


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_postgresql_goes_and_comes_back_and_no_process_has_to_be_started_again(fleet, witness, how):
    numbers = {name: member.pid for name, member in fleet.members.items()}
    jobs = submit_all(fleet, witness, f"restart {how}")
    os.kill(fleet.postgres.process.pid, how)
    fleet.postgres.process.wait(30)
    try:
        assert_database_loss_is_reported(fleet)
    finally:
        fleet.postgres.start()
    back = time.monotonic()
    new = fleet.submit(f"after {how}", **short(witness.port))
    assert eventually(lambda: witness.of(new), timeout_s=back + BACK_S - time.monotonic())
    assert_all_end_right(fleet, witness, {**jobs, new: 0})
    assert {name: member.pid for name, member in fleet.members.items()} == numbers
    assert all(member.is_alive for member in fleet.members.values())
