"""A worker with all threads busy loses its broker: what ended meanwhile takes no slot."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest

from tests.faults.fleet import Fleet
from tests.faults.fleet_jobs import short
from tests.faults.witness import Witness
from tests.waiting import eventually

THREADS = 3
# What every step looks at first; a tick waits for it until PostgreSQL's lock_timeout.
TABLES = "jobs_job, jobs_cluster, jobs_attempt"
WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND %s = ANY (pg_blocking_pids(pid))
"""
BOUND_S = 60


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """Start one of each."""
    fleet = Fleet(1, MPORTAL_WORKER_THREADS=str(THREADS))
    try:
        fleet.start()
        yield fleet
    finally:
        fleet.close()


@pytest.fixture
def witness() -> Iterator[Witness]:
    """Provide a witness of the living incarnations."""
    witness = Witness()
    yield witness
    witness.close()


@contextmanager
def killed(fleet: Fleet) -> Iterator[None]:
    """Kill Redis, and start another one at the end."""
    assert fleet.redis.process is not None
    fleet.redis.process.send_signal(signal.SIGKILL)
    fleet.redis.process.wait(10)
    try:
        yield
    finally:
        fleet.redis.start()


@contextmanager
def frozen(fleet: Fleet) -> Iterator[None]:
    """Stop Redis with its connections open, and continue it at the end."""
    process = fleet.redis.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@contextmanager
def every_thread_busy(fleet: Fleet) -> Iterator[None]:
    """Keep all threads of the worker waiting until the block ends, each with a tick."""
    url = fleet.place.home.postgres.url()
    with psycopg.connect(url) as blocker, psycopg.connect(url, autocommit=True) as looker:
        blocker.execute(f"LOCK TABLE {TABLES} IN ACCESS EXCLUSIVE MODE")
        is_full = eventually(lambda: waiting(looker, blocker) >= THREADS, timeout_s=30)
        assert is_full, (waiting(looker, blocker), fleet.logs())
        yield


def waiting(looker: psycopg.Connection, blocker: psycopg.Connection) -> int:
    """Count the sessions that wait for the tables of `blocker`."""
    row = looker.execute(WAITING, (blocker.info.backend_pid,)).fetchone()
    assert row is not None
    return int(row[0])


def steps_under_way(looker: psycopg.Connection) -> bool:
    """Whether a step holds the lock on its row."""
    row = looker.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchone()
    return row is not None


@pytest.mark.feature("P2.1")
@pytest.mark.parametrize("away", [killed, frozen])
def test_a_worker_whose_every_task_ended_while_redis_was_away_takes_work_when_it_is_back(
    fleet, witness, away
):
    url = fleet.place.home.postgres.url()
    with ExitStack() as absence, psycopg.connect(url, autocommit=True) as looker:
        with every_thread_busy(fleet):
            absence.enter_context(away(fleet))
        assert eventually(lambda: not steps_under_way(looker), timeout_s=30), fleet.logs()
    job_id = fleet.submit(away.__name__, **short(witness.port))
    assert fleet.wait_for_end(job_id, timeout_s=BOUND_S)["status"] == "SUCCEEDED"
    assert fleet["worker-0"].is_alive
