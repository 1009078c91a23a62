"""The fake backend by the clock: plans, orders from outside, and what its runner would say."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from jobs.backends.base import ClusterPhase, LaunchRequest
from jobs.backends.fake.backend import FakeBackend, FakePlan
from jobs.errors import BackendError, NotYetGoneError


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fake(tmp_path: Path, clock: Clock) -> FakeBackend:
    return FakeBackend(tmp_path, clock)


def launch(fake: FakeBackend, name: str = "mp1-1", job_name: str = "hello", nodes: int = 1) -> str:
    fake.launch(LaunchRequest(name, "rl", 1, job_name, 1, 1, {}, nodes, "", ""))
    return name


def ends_of(fake: FakeBackend, name: str) -> list[tuple[str, int]]:
    frames = map(json.loads, fake.leftovers(name).frames)
    return [(frame["reason"], frame["exit_code"]) for frame in frames if frame["kind"] == "end"]


def test_a_cluster_lives_by_its_plan(fake: FakeBackend, clock: Clock) -> None:
    fake.set_plan(FakePlan(start_s=10, run_s=60, tear_down_s=5, exit_code=7))
    name = launch(fake)
    phases = []
    for step_s in (0, 10, 59, 1):
        clock.now += step_s
        phases.append(fake.observe(name).phase)
    assert phases == [
        ClusterPhase.STARTING,
        ClusterPhase.UP,
        ClusterPhase.UP,
        ClusterPhase.ENDED,
    ]
    assert ends_of(fake, name) == [("USER_CODE", 7)]
    with pytest.raises(NotYetGoneError):
        fake.tear_down(name)
    clock.now += 5
    fake.tear_down(name)
    assert fake.observe(name).phase is ClusterPhase.GONE


def test_a_plan_can_be_for_one_jobs_name(fake: FakeBackend) -> None:
    fake.set_plan(FakePlan(run_s=0))
    fake.set_plan(FakePlan(launch_error="the cloud is closed"), job_name="unlucky")
    with pytest.raises(BackendError, match="closed"):
        launch(fake, "mp1-1", job_name="unlucky")
    assert fake.observe(launch(fake, "mp1-2")).phase is ClusterPhase.ENDED


def test_a_stopped_job_says_that_it_was_stopped(fake: FakeBackend, clock: Clock) -> None:
    fake.set_plan(FakePlan(stop_s=3))
    name = launch(fake)
    fake.stop(name, grace_s=10)
    clock.now += 3
    assert ends_of(fake, name) == [("CANCELLED_BY_USER", 143)]


def test_lost_machines_leave_no_last_word(fake: FakeBackend) -> None:
    name = launch(fake)
    fake.lose(name)
    assert fake.observe(name).phase is ClusterPhase.GONE
    assert list(fake.leftovers(name).frames) == []


def test_frames_are_numbered_without_holes(fake: FakeBackend) -> None:
    fake.set_plan(FakePlan(run_s=0, lines=("a", "b")))
    name = launch(fake, nodes=2)
    frames = [json.loads(frame) for frame in fake.frames(name)]
    for rank in (0, 1):
        numbers = [frame["seq"] for frame in frames if frame["rank"] == rank]
        assert numbers == list(range(1, len(numbers) + 1))
    assert [frame["text"] for frame in frames if frame["kind"] == "line"] == ["a", "b"]


def test_two_processes_see_one_backend(fake: FakeBackend, tmp_path: Path, clock: Clock) -> None:
    name = launch(fake)
    other = FakeBackend(tmp_path, clock)
    assert other.observe(name).phase is ClusterPhase.UP
    other.finish(name, exit_code=3)
    assert ends_of(fake, name) == [("USER_CODE", 3)]
    other.tear_down(name)
    assert fake.calls() == [("launch", name), ("tear_down", name)]


def test_a_reader_beside_the_end_of_a_run_sees_no_line_that_is_missing_later(
    tmp_path: Path, clock: Clock
) -> None:
    readers: list[threading.Thread] = []
    seen: list[list[bytes]] = []

    class EndingClock(Clock):
        """A clock at which another process reads, a moment later."""

        def __call__(self) -> float:
            clock.now += 0.5
            reader = threading.Thread(target=lambda: seen.append(fake.frames("mp1-1")))
            reader.start()
            # Long enough for a reader that need not wait for the change.
            reader.join(0.1)
            readers.append(reader)
            return clock.now - 0.5

    fake = FakeBackend(tmp_path, clock)
    fake.set_plan(FakePlan(lines=tuple("abcdefgh"), line_every_s=0.1))
    launch(fake)
    FakeBackend(tmp_path, EndingClock()).finish("mp1-1")
    for reader in readers:
        reader.join()
    assert seen == [fake.frames("mp1-1")]
