"""Messages are hints: dropped, doubled, late or out of order, every job ends right, once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from tests.faults.fleet import JOBS, Fleet
from tests.faults.fleet_jobs import LOCAL, assert_every_line_once, short
from tests.faults.unruly_broker import VARIABLE, Rules
from tests.faults.witness import BEGIN, Witness
from tests.waiting import eventually

SEED = "20261121"
BOUND_S = 60
OFTEN = 0.3
RULES = {
    "dropped": Rules(drop=OFTEN),
    "doubled": Rules(double=OFTEN),
    "delayed": Rules(delay=OFTEN),
    "reordered": Rules(reorder=OFTEN),
    "all of it": Rules(OFTEN, OFTEN, OFTEN, OFTEN),
}


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the file that controls what the broker does now."""
    file = tmp_path_factory.mktemp("unruly") / "rules.json"
    Rules().write(file)
    return file


@pytest.fixture(scope="module")
def fleet(rules: Path) -> Iterator[Fleet]:
    """Start two of each, on a broker that obeys `rules`."""
    fleet = Fleet(2, **{VARIABLE: str(rules), "FLEET_SEED": SEED})
    try:
        fleet.start()
        yield fleet
    finally:
        fleet.close()


@pytest.fixture
def witness(fleet: Fleet, rules: Path) -> Iterator[Witness]:
    """Provide a witness of the living incarnations; afterwards the broker is well again."""
    fleet.failures.clear()
    witness = Witness()
    yield witness
    witness.close()
    Rules().write(rules)


@dataclass(frozen=True)
class Promise:
    """The required end of a job."""

    job_id: int
    status: str
    exit_code: int | None
    attempts: int = 1


def submit_dozen(fleet: Fleet, witness: Witness, name: str) -> list[Promise]:
    """Submit twelve small jobs: they succeed, fail, are cancelled, are tried again."""
    begin = BEGIN.format(port=witness.port)
    again = begin + "[ $MPORTAL_ATTEMPT = 2 ] || exit 9\n"
    endless = begin + "while read -r word <&3; do :; done\n"
    promises = []

    def submit(status: str, exit_code: int | None, attempts: int = 1, **spec: object) -> None:
        job_id = fleet.submit(f"{name} {len(promises)}", **spec)
        promises.append(Promise(job_id, status, exit_code, attempts))

    for code in (0, 3, 0, 4, 0, 0):
        submit("FAILED" if code else "SUCCEEDED", code, **short(witness.port, code))
    for _ in range(2):
        retry = {"retry": {"max_attempts": 2}}
        spec = {"name": "again", "run": again, "resources": LOCAL, "portal": retry}
        submit("SUCCEEDED", 0, attempts=2, **spec)
    for _ in range(4):
        submit("CANCELLED", None, name="endless", run=endless, resources=LOCAL)
    running, *others = [each.job_id for each in promises if each.status == "CANCELLED"]
    for job_id in others:
        fleet.cancel(job_id)
    assert eventually(lambda: witness.living(running), timeout_s=BOUND_S)
    fleet.cancel(running)
    return promises


def assert_kept(fleet: Fleet, witness: Witness, promises: list[Promise], bound_s: float) -> None:
    """Check that each job ended as promised, its commands lived once each, and nothing is left."""
    deadline = time.monotonic() + bound_s
    for promise in promises:
        job = fleet.wait_for_end(promise.job_id, timeout_s=deadline - time.monotonic())
        assert (job["status"], job["attempt"] or 1) == (promise.status, promise.attempts)
        if promise.exit_code is None:
            continue
        assert job["exit_code"] == promise.exit_code
        assert len(witness.of(promise.job_id)) == promise.attempts
        if job["name"] == "short":
            assert_every_line_once(fleet.lines(promise.job_id))
    assert witness.doubles == []
    left = "SELECT FROM jobs_cluster WHERE status <> 'GONE'"
    assert eventually(lambda: fleet.query(left) == [], timeout_s=30)


@pytest.mark.feature("P2.1")
@pytest.mark.parametrize("fate", RULES)
def test_whatever_becomes_of_three_messages_in_ten_every_job_ends_right_once(
    fleet, witness, rules, fate
):
    RULES[fate].write(rules)
    assert_kept(fleet, witness, submit_dozen(fleet, witness, fate), BOUND_S)


@pytest.mark.feature("P2.1")
def test_when_no_message_arrives_work_waits_and_goes_on_when_they_do(fleet, witness, rules):
    Rules(drop=1.0).write(rules)
    key = "nothing arrives"
    job_id = fleet.submit(key, **short(witness.port))
    cancelled = fleet.submit("cancelled meanwhile", **short(witness.port))
    fleet.cancel(cancelled)
    # A hint that was under way before may have started it.
    assert fleet.job(cancelled)["status"] in {"CANCELLED", "STOPPING"}
    # Longer than every tick.
    assert not eventually(lambda: fleet.job(job_id)["is_final"], timeout_s=6)
    Rules().write(rules)
    kept = [Promise(job_id, "SUCCEEDED", 0), Promise(cancelled, "CANCELLED", None)]
    assert_kept(fleet, witness, kept, BOUND_S)


@contextmanager
def broker(fleet: Fleet) -> Iterator[redis.Redis]:
    """Connect to the fleet's Redis directly, past the unruly transport."""
    client = redis.Redis.from_url(fleet.place.home.redis.url)
    yield client
    client.close()


@pytest.mark.feature("P2.1")
def test_a_redis_that_is_emptied_again_and_again_loses_no_work(fleet, witness):
    stop = threading.Event()

    def empty() -> None:
        moments = random.Random(SEED)
        with broker(fleet) as client:
            while not stop.wait(moments.uniform(0.2, 1.5)):
                client.flushall()

    thread = threading.Thread(target=empty)
    thread.start()
    try:
        promises = submit_dozen(fleet, witness, "emptied")
    finally:
        stop.set()
        thread.join()
    assert_kept(fleet, witness, promises, BOUND_S)


@pytest.mark.feature("P2.1")
def test_a_redis_that_is_full_stops_no_request_and_work_goes_on_when_it_has_room(fleet, witness):
    running = fleet.submit("before it is full", **short(witness.port))
    with broker(fleet) as client:
        client.config_set("maxmemory", "1")
        try:
            job_id = fleet.submit("while it is full", **short(witness.port))
            with fleet.client() as http:
                assert http.get(JOBS).is_success
                assert http.get("/readyz").status_code in {200, 503}
            cancelled = fleet.submit("cancelled while full", **short(witness.port))
            fleet.cancel(cancelled)
            # Long enough for every process to meet it.
            assert not eventually(lambda: fleet.failures, timeout_s=5)
        finally:
            client.config_set("maxmemory", "96mb")
    kept = [Promise(running, "SUCCEEDED", 0), Promise(job_id, "SUCCEEDED", 0)]
    assert_kept(fleet, witness, [*kept, Promise(cancelled, "CANCELLED", None)], BOUND_S)
    fallen = [name for name, member in fleet.members.items() if not member.is_alive]
    assert fallen == [], fleet.logs()
