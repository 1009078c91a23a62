"""Keeping a part alive: at once the first time, ever slower when it keeps failing."""

from __future__ import annotations

import errno
import signal

import pytest

from monarch_portal.embedded import part as parts
from monarch_portal.embedded.errors import ServerStartError
from monarch_portal.embedded.part import Part


class FakeProcess:
    """A process that runs until it receives a signal."""

    pid = 1

    def __init__(self) -> None:
        self.code: int | None = None
        self.signals: list[int] = []

    def poll(self) -> int | None:
        return self.code

    def wait(self, timeout: float | None = None) -> int:
        return self.code or 0

    def send_signal(self, sig: int) -> None:
        self.signals.append(sig)
        self.code = -sig


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(parts.time, "monotonic", lambda: now[0])
    return now


def started_part() -> tuple[Part, list[FakeProcess]]:
    processes: list[FakeProcess] = []

    def start() -> FakeProcess:
        processes.append(FakeProcess())
        return processes[-1]

    part = Part("web", start)
    part.begin()
    return part, processes


def test_a_part_that_runs_is_left_alone(clock):
    part, processes = started_part()
    assert not part.look()
    assert len(processes) == 1


def test_a_part_that_ended_is_started_again_after_a_moment(clock):
    part, processes = started_part()
    processes[-1].code = -9
    assert not part.look()
    clock[0] += parts.FIRST_DELAY_S
    assert part.look()
    assert len(processes) == 2


def test_a_part_that_keeps_ending_is_started_ever_slower(clock):
    part, processes = started_part()
    for _ in range(12):
        processes[-1].code = 1
        part.look()
        clock[0] += parts.LONGEST_DELAY_S
        assert part.look()
    processes[-1].code = 1
    part.look()
    clock[0] += parts.LONGEST_DELAY_S / 2
    assert not part.look()


def test_a_part_that_ran_long_has_recovered(clock):
    part, processes = started_part()
    for _ in range(10):
        processes[-1].code = 1
        part.look()
        clock[0] += parts.LONGEST_DELAY_S
        assert part.look()
    clock[0] += parts.STEADY_S + 1
    processes[-1].code = 1
    part.look()
    clock[0] += parts.FIRST_DELAY_S
    assert part.look()


def test_a_part_that_is_killed_every_twenty_seconds_is_back_at_once_each_time(clock):
    part, processes = started_part()
    for _ in range(12):
        clock[0] += 20
        processes[-1].code = -9
        part.look()
        clock[0] += parts.FIRST_DELAY_S
        assert part.look()


def test_a_server_that_does_not_start_is_tried_again_later(clock):
    tries = []

    def refuse() -> FakeProcess:
        tries.append(clock[0])
        raise ServerStartError("no")

    part = Part("postgres", refuse)
    assert not part.look()
    assert not part.look()
    assert len(tries) == 1
    clock[0] += parts.FIRST_DELAY_S
    assert not part.look()
    assert len(tries) == 2


def test_a_full_disk_does_not_end_the_supervisor(clock):
    full = [OSError(errno.ENOSPC, "No space left on device")]

    def start() -> FakeProcess:
        if full:
            raise full.pop()
        return FakeProcess()

    part = Part("postgres", start)
    assert not part.look()
    clock[0] += parts.FIRST_DELAY_S
    assert part.look()


def test_ending_sends_the_parts_own_signal(clock):
    part, processes = started_part()
    part.signals = (signal.SIGINT,)
    part.end()
    part.end()
    assert processes[-1].signals == [signal.SIGINT]
