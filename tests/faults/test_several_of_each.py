"""Two webs, workers, beats, followers and gateways on one database; of each one dies, or hangs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.faults.attached import Attached, gateway_of_head, start_job
from tests.faults.fleet import KINDS, Fleet
from tests.faults.fleet_jobs import (
    Watcher,
    assert_every_line_once,
    begins_within,
    finish_pulled,
    pulled,
    short,
    steady,
)
from tests.faults.held_points import HeldPoints
from tests.faults.witness import TO_GO_ON, Witness
from tests.waiting import eventually

PARTS = (*KINDS, "gateway")
HANDED_OVER_S = 10
# The head and the program find out that their gateway hangs, and connect to the other one.
REATTACHED_S = 20
HANGS_S = 15
ATTEMPT = "SELECT id FROM jobs_attempt WHERE job_id = {}"
CLUSTERS_LEFT = """
SELECT FROM jobs_cluster JOIN jobs_attempt ON jobs_attempt.cluster_id = jobs_cluster.id
WHERE job_id IN ({}, {}) AND jobs_cluster.status <> 'GONE'
"""
_names = itertools.count(1)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> HeldPoints:
    """Provide the points at which a process may be made to hang."""
    return HeldPoints(tmp_path_factory.mktemp("held") / "points")


@pytest.fixture(scope="module")
def running_fleet(points: HeldPoints) -> Iterator[Fleet]:
    """Start two of each."""
    fleet = Fleet(2, gateways=2, MPORTAL_CRASH_POINTS=str(points.directory))
    try:
        fleet.start()
        yield fleet
    finally:
        points.let_go()
        fleet.close()


@pytest.fixture
def fleet(running_fleet: Fleet, points: HeldPoints) -> Iterator[Fleet]:
    """Provide two of each, all of them well, before the test and after it."""
    yield running_fleet
    points.let_go()
    running_fleet.revive()


@pytest.fixture(scope="module")
def attached_job(running_fleet: Fleet) -> int:
    """Start a job whose workers wait for programs; it outlives every test."""
    return start_job(running_fleet)


@pytest.fixture
def attached(fleet: Fleet, attached_job: int) -> Iterator[Attached]:
    """Provide a program that is attached to that job."""
    program = Attached(fleet, attached_job)
    try:
        assert program.reaches_worker(HANDED_OVER_S), fleet.logs()
        yield program
    finally:
        fleet.revive()
        program.close()


@pytest.fixture
def witness() -> Iterator[Witness]:
    """Provide a witness of the living incarnations."""
    witness = Witness()
    witness.allow(0)
    yield witness
    witness.close()


@dataclass
class Work:
    """The jobs that run while the fleet is broken: one pushes its lines, one has them fetched.

    A program is attached to a third one, which is that of all tests.
    """

    fleet: Fleet
    witness: Witness
    attached: Attached

    def __post_init__(self) -> None:
        name = f"pulled-{next(_names)}"
        self.steady = self.fleet.submit(f"steady {name}", **steady(self.witness.port))
        self.pulled = self.fleet.submit(name, **pulled(self.fleet, name))
        self.witness.wait_for(self.steady, ranks=2)
        self.watchers = [Watcher(self.fleet, job) for job in (self.steady, self.pulled)]
        assert eventually(lambda: all(len(each.seen) > 5 for each in self.watchers))

    def goes_on(self, since: float) -> None:
        """Check that lines arrive and a new job begins within ten seconds, and links soon after."""
        key = f"next {next(_names)}"
        new = self.fleet.submit(key, **short(self.witness.port))
        assert begins_within(self.witness, new, since + HANDED_OVER_S - time.monotonic())
        for watcher in self.watchers:
            left_s = since + HANDED_OVER_S - time.monotonic()
            # The pause itself, not what was under way when it began.
            watcher.first_after(since + 0.5, max(left_s, 0.1))
        assert self.attached.reaches_worker(since + REATTACHED_S - time.monotonic())
        assert self.fleet.submit(key, **short(self.witness.port)) == new
        assert self.fleet.wait_for_end(new)["status"] == "SUCCEEDED"
        assert_every_line_once(self.fleet.lines(new))

    def follower(self) -> str:
        """Return the name of the follower that fetches the lines of the second job."""
        query = f"SELECT owner FROM jobs_followlease WHERE attempt_id IN ({ATTEMPT})"
        [(owner,)] = self.fleet.query(query.format(self.pulled))
        pid = int(owner.partition("-")[0])
        return next(name for name, each in self.fleet.members.items() if each.pid == pid)

    def victims(self, kinds: tuple[str, ...]) -> list[str]:
        """List one of each kind; of followers and gateways the one that is at work."""
        at_work = {"follower": self.follower, "gateway": lambda: gateway_of_head(self.fleet)}
        return [at_work[kind]() if kind in at_work else f"{kind}-0" for kind in kinds]

    def ends_well(self) -> None:
        """Check exact exit codes, every line once, in the log and as watched, and one life each."""
        self.witness.allow(TO_GO_ON)
        printed = finish_pulled(self.fleet, self.pulled, exit_code=5)
        for job_id, exit_code in ((self.steady, 7), (self.pulled, 5)):
            job = self.fleet.wait_for_end(job_id)
            assert (job["status"], job["exit_code"], job["attempt"]) == ("FAILED", exit_code, 1)
        by_rank = [self.fleet.lines(self.steady, rank) for rank in (0, 1)]
        for lines in by_rank:
            assert_every_line_once(lines)
        assert self.fleet.lines(self.pulled) == printed
        assert sorted(self.watchers[0].texts()) == sorted(itertools.chain(*by_rank))
        assert self.watchers[1].texts() == printed
        assert self.witness.doubles == []
        assert len(self.witness.of(self.steady)) == 2


@pytest.mark.feature("P2.2")
@pytest.mark.parametrize("kinds", [*((kind,) for kind in PARTS), PARTS], ids="+".join)
def test_one_of_two_is_killed_and_the_work_goes_on_at_once_and_once(
    fleet, witness, attached, kinds
):
    work = Work(fleet, witness, attached)
    for name in work.victims(kinds):
        fleet[name].kill()
    work.goes_on(time.monotonic())
    work.ends_well()


@pytest.mark.feature("P2.2")
def test_one_of_each_hangs_and_wakes_up_and_does_no_harm(fleet, witness, attached):
    work = Work(fleet, witness, attached)
    since, victims = time.monotonic(), work.victims(PARTS)
    for name in victims:
        fleet[name].stop()
    work.goes_on(since)
    assert eventually(lambda: time.monotonic() > since + HANGS_S, timeout_s=HANGS_S + 5)
    for name in victims:
        fleet[name].go_on()
    work.goes_on(time.monotonic())
    work.ends_well()


@pytest.mark.feature("P2.2")
@pytest.mark.parametrize("is_killed", [False, True], ids=["hangs", "is killed"])
def test_a_follower_that_ends_with_frames_in_its_hands_loses_and_doubles_none(
    fleet, witness, attached, points, is_killed
):
    work = Work(fleet, witness, attached)
    points.hold("follow.read")
    holder = points.wait_for("follow.read")
    name = work.follower()
    assert fleet[name].pid == holder
    fleet[name].kill() if is_killed else fleet[name].stop()
    since = time.monotonic()
    points.let_go()
    work.goes_on(since)
    assert work.follower() != name
    if not is_killed:
        fleet[name].go_on()
        work.goes_on(time.monotonic())
    work.ends_well()


@pytest.mark.feature("P2.2")
def test_a_worker_that_hangs_in_the_middle_of_a_launch_is_replaced_and_launches_nothing_twice(
    fleet, witness, points
):
    points.hold("launch.asking")
    witness.allow(TO_GO_ON)
    job_id = fleet.submit(f"held {next(_names)}", **short(witness.port))
    holder = points.wait_for("launch.asking")
    name = next(name for name, each in fleet.members.items() if each.pid == holder)
    fleet[name].stop()
    points.let_go()
    assert begins_within(witness, job_id, HANDED_OVER_S)
    assert fleet.wait_for_end(job_id)["status"] == "SUCCEEDED"
    fleet[name].go_on()
    after = fleet.submit(f"after {next(_names)}", **short(witness.port))
    assert fleet.wait_for_end(after)["status"] == "SUCCEEDED"
    assert [len(witness.of(each)) for each in (job_id, after)] == [1, 1]
    left = CLUSTERS_LEFT.format(job_id, after)
    assert eventually(lambda: fleet.query(left) == [])
