"""Starts and restarts of the process with the mesh admin, and the last try."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from monarch_client.runner.mesh import admin_process as mesh_admin_process
from monarch_client.runner.mesh.admin_process import MeshAdminProcess


class Children:
    """A stand-in that records the requested starts."""

    def __init__(self) -> None:
        self.is_ending = False
        self.started: list[list[str]] = []
        self.exit: Any = None
        self.refuses = False

    def start(self, argv: list[str], **how: Any) -> Any:
        self.started.append(argv)
        if self.refuses:
            raise OSError("no such file")
        self.exit = how["on_exit"]
        return SimpleNamespace(pid=100 + len(self.started), last_lines=["RuntimeError('no')"])


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    monkeypatch.setattr(mesh_admin_process.environment, "python_of", lambda _place: "python")
    monkeypatch.setattr(mesh_admin_process.environment, "monarch_environment", lambda _place: {})
    now = [1000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(mesh_admin_process, "time", clock)
    return now


@pytest.fixture
def place(now: list[float], tmp_path: Path) -> Any:
    return SimpleNamespace(
        loop=SimpleNamespace(post=lambda call: call()),
        folder=SimpleNamespace(
            state=tmp_path,
            meshes=tmp_path / "meshes.json",
            admins=tmp_path / "admins.json",
            watch=tmp_path / "watch",
        ),
        children=Children(),
        remarks=(remarks := []),
        recorder=SimpleNamespace(remark=remarks.append),
    )


def test_it_runs_once_and_where_it_listened_is_forgotten_when_it_dies(place, now) -> None:
    process = MeshAdminProcess(place)
    process.keep()
    process.keep()
    assert (process.pid, len(place.children.started)) == (101, 1)
    place.folder.admins.write_text("{}")
    place.children.exit(-9)
    assert not place.folder.admins.exists()
    process.keep()
    assert len(place.children.started) == 1
    now[0] += 10.0
    process.keep()
    assert process.pid == 102


@pytest.mark.parametrize("refuses", [False, True])
def test_one_that_never_comes_up_is_given_up_with_a_line_in_the_log(place, now, refuses) -> None:
    process = MeshAdminProcess(place)
    place.children.refuses = refuses
    for _ in range(9):
        process.keep()
        if process.pid is not None:
            place.children.exit(1)
        now[0] += 10.0
    assert len(place.children.started) == 2
    (line,) = place.remarks
    assert line.endswith("no such file" if refuses else "code 1. RuntimeError('no')")


def test_one_that_dies_again_and_again_is_given_up(place, now) -> None:
    process = MeshAdminProcess(place)
    for _ in range(9):
        process.keep()
        if process.pid is not None:
            place.folder.admins.touch()
            place.children.exit(-9)
        now[0] += 10.0
    assert len(place.children.started) == 5
    assert len(place.remarks) == 1


def test_one_that_was_no_longer_needed_is_started_for_the_next_request(place, now) -> None:
    process = MeshAdminProcess(place)
    for number in range(9):
        process.keep()
        assert process.pid == 101 + number
        place.folder.admins.touch()
        place.children.exit(0)
    assert place.remarks == []


def test_where_memory_is_short_it_stays_away_and_its_end_is_not_the_jobs(
    place, now, monkeypatch
) -> None:
    kills = [3]
    monkeypatch.setattr(mesh_admin_process, "oom_kills", lambda: kills[0])
    process, forgiven = MeshAdminProcess(place), []
    process.on_out_of_memory = lambda: forgiven.append(kills[0])
    process.keep()
    place.folder.admins.touch()
    kills[0] += 1
    place.children.exit(-9)
    now[0] += 10.0
    process.keep()
    assert (len(place.children.started), forgiven) == (1, [4])
    (line,) = place.remarks
    assert line.endswith("for lack of memory")


def test_while_all_is_being_ended_nothing_is_started_or_said(place, now) -> None:
    process = MeshAdminProcess(place)
    for _ in range(5):
        process.keep()
        place.children.is_ending = process.pid == 105
        place.folder.admins.touch()
        place.children.exit(-15)
        now[0] += 10.0
    assert len(place.children.started) == 5
    assert place.remarks == []
    MeshAdminProcess(place).keep()
    assert len(place.children.started) == 5
