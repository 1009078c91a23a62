"""A worker with all threads busy, whose broker goes: what it can't acknowledge takes no place."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
import redis

from tests.faults.fleet import Fleet
from tests.faults.fleet_jobs import short
from tests.faults.witness import Witness
from tests.waiting import eventually

THREADS = 3
# What every step looks at first; a tick waits for it until PostgreSQL's lock_timeout.
TABLES = "jobs_job, jobs_cluster, jobs_attempt"
# The hash in which kombu keeps what workers have taken and not acknowledged.
IN_HAND = "unacked"
REFUSED = "Couldn't ack"
BOUND_S = 60


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """One of each."""
    fleet = Fleet(1, MPORTAL_WORKER_THREADS=str(THREADS))
    try:
        fleet.start()
        yield fleet
    finally:
        fleet.close()


@pytest.fixture
def witness() -> Iterator[Witness]:
    """Counts the living."""
    witness = Witness()
    yield witness
    witness.close()


@contextmanager
def killed(fleet: Fleet) -> Iterator[None]:
    """Redis is killed, and at the end another one started."""
    assert fleet.redis.process is not None
    fleet.redis.process.send_signal(signal.SIGKILL)
    fleet.redis.process.wait(10)
    try:
        yield
    finally:
        fleet.redis.start()


@contextmanager
def frozen(fleet: Fleet) -> Iterator[None]:
    """Redis stands still, with its connections open, and goes on at the end."""
    process = fleet.redis.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@contextmanager
def every_thread_busy(fleet: Fleet) -> Iterator[None]:
    """Until the end of this the worker's threads wait, each with a tick in its hands."""
    with (
        psycopg.connect(fleet.place.home.postgres.url()) as blocker,
        redis.Redis.from_url(fleet.place.home.redis.url) as broker,
    ):
        blocker.execute(f"LOCK TABLE {TABLES} IN ACCESS EXCLUSIVE MODE")
        is_full = eventually(lambda: broker.hlen(IN_HAND) == THREADS, timeout_s=30)
        assert is_full, (broker.hlen(IN_HAND), fleet.logs())
        yield


@pytest.mark.feature("P2.1")
@pytest.mark.parametrize(
    ("away", "least"),
    # Of a connection that is closed a worker may hear between two of its acknowledgements.
    [(killed, 1), (frozen, THREADS)],
    ids=["killed", "frozen"],
)
def test_a_worker_whose_every_task_ended_while_redis_was_away_takes_work_when_it_is_back(
    fleet, witness, away, least
):
    log = fleet["worker-0"].log
    with ExitStack() as absence:
        with every_thread_busy(fleet):
            absence.enter_context(away(fleet))
        refused = eventually(lambda: log.read_text().count(REFUSED) >= least, timeout_s=30)
        assert refused, fleet.logs()
    job_id = fleet.submit(away.__name__, **short(witness.port))
    assert fleet.wait_for_end(job_id, timeout_s=BOUND_S)["status"] == "SUCCEEDED"
    assert fleet["worker-0"].is_alive
