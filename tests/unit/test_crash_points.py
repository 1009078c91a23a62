"""Holding a process at a named moment: off by default, once for each arming, let go by a file."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from monarch_client import crash_points
from tests.waiting import eventually

POINT = "runner.setup"


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a directory as if MPORTAL_CRASH_POINTS had named it at the start."""
    monkeypatch.setattr(crash_points, "_directory", str(tmp_path))
    return tmp_path


def reach_in_thread() -> threading.Thread:
    thread = threading.Thread(target=crash_points.reach, args=(POINT,), daemon=True)
    thread.start()
    return thread


def test_without_the_variable_a_point_does_nothing_and_nodes_get_nothing() -> None:
    assert crash_points.VARIABLE not in os.environ
    crash_points.reach(POINT)
    assert crash_points.environment_of(1) == {}
    assert crash_points.directories() == []


def test_a_point_that_is_not_held_is_passed(held: Path) -> None:
    crash_points.reach(POINT)
    assert list(held.iterdir()) == []


def test_a_process_waits_at_a_held_point_until_it_is_released(held: Path) -> None:
    (held / POINT).touch()
    thread = reach_in_thread()
    taken = held / f"{POINT}.at-{os.getpid()}"
    assert eventually(taken.exists)
    assert not (held / POINT).exists()
    assert thread.is_alive()
    taken.unlink()
    thread.join(20)
    assert not thread.is_alive()


def test_a_point_is_held_for_one_process_only(held: Path) -> None:
    (held / POINT).touch()
    first = reach_in_thread()
    taken = held / f"{POINT}.at-{os.getpid()}"
    assert eventually(taken.exists)
    crash_points.reach(POINT)
    taken.unlink()
    first.join(20)


def test_a_forgotten_point_does_not_hold_for_ever(
    held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crash_points, "LONGEST_HOLD_S", 0.0)
    (held / POINT).touch()
    crash_points.reach(POINT)
    assert (held / f"{POINT}.at-{os.getpid()}").exists()


def test_each_runner_gets_a_directory_of_its_own_and_is_shown_it(held: Path) -> None:
    assert crash_points.environment_of(1) == {"MPORTAL_CRASH_POINTS": str(held / "rank-1")}
    assert crash_points.directories() == [held]
