"""Rank 0's decisions, with nodes that only say how far they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.attempt.attempt import Attempt
from monarch_client.runner.base.config import NodeFolder, _parse
from monarch_client.runner.base.loop import MainLoop
from monarch_client.runner.journal.journal import Journal
from monarch_client.runner.journal.recorder import Recorder
from monarch_client.runner.journal.samples import Samples
from monarch_client.runner.place import Place
from monarch_client.runner.vocabulary.node_state import NodeState
from tests.unit.runner.base.test_config import MINIMAL


class StandInNode:
    """A node that records its goals."""

    def __init__(self) -> None:
        self.state = NodeState()
        self.goals: list[str] = []
        self.on_change: Any = None

    def pursue(self, goal: str, grace_s: float) -> None:
        self.goals.append(goal)


class Table:
    """An attempt of three nodes without processes; a test reports the nodes' states."""

    def __init__(self, folder: Path, **config: Any) -> None:
        node_folder = NodeFolder(folder)
        self.journal = Journal(node_folder.journal)
        self.loop = MainLoop()
        self.node = StandInNode()
        self.folder = node_folder
        self.requested: list[str] = []
        self.over: list[bool] = []
        children: Any = None
        node: Any = self.node
        place = Place(
            _parse({**MINIMAL, **config}),
            0,
            node_folder,
            self.loop,
            children,
            Recorder(self.journal, 0),
            Samples(),
        )
        self.attempt = Attempt(place, node, lambda: self.over.append(True))
        self.attempt.send_goal = self.requested.append
        self.attempt.begin()

    def tell(self, rank: int, **state: Any) -> None:
        if rank == 0:
            for name, value in state.items():
                setattr(self.node.state, name, value)
            self.node.on_change()
        else:
            self.attempt.node_changed(rank, NodeState(**{"setup": 0, **state}))

    def all_report(self, **state: Any) -> None:
        for rank in range(3):
            self.tell(rank, **state)

    def frames(self, kind: str) -> list[dict[str, Any]]:
        return [
            frame for frame in map(json.loads, self.journal.peek(1 << 20)) if frame["kind"] == kind
        ]

    @property
    def end(self) -> dict[str, Any]:
        (frame,) = self.frames("end")
        return frame

    def finish(self) -> dict[str, Any]:
        self.all_report(ended=True)
        return self.end


@pytest.fixture
def plain(tmp_path: Path) -> Table:
    return Table(tmp_path)


@pytest.fixture
def monarch(tmp_path: Path) -> Table:
    return Table(tmp_path, meshes={"trainers": 2, "generators": 1})


def running(table: Table) -> Table:
    table.all_report(setup=0)
    if table.attempt.goal == "workers":
        table.all_report(worker="ready", python="3.11")
    assert table.attempt.goal == "run"
    return table


def test_a_barrier_opens_when_the_last_node_is_there(monarch: Table) -> None:
    monarch.tell(0, setup=0)
    monarch.tell(1)
    assert monarch.requested == ["setup"]
    monarch.tell(2)
    assert monarch.requested == ["setup", "workers"]
    monarch.tell(2, worker="ready")
    monarch.tell(1, worker="ready")
    assert monarch.attempt.goal == "workers"
    monarch.tell(0, worker="ready")
    assert monarch.requested == monarch.node.goals == ["setup", "workers", "run"]


@pytest.mark.parametrize(
    ("lost", "crash"),
    [
        ({"worker_exit": 139}, "worker of rank 1: exit code 139 (stage run)"),
        ({"worker_exit": 137}, "worker of rank 1: exit code 137 (stage run)"),
        # As when the machine is taken away; and its runner was killed.
        ({"worker_exit": 143}, ""),
        ({"worker_exit": None}, ""),
    ],
)
def test_a_workers_crash_on_a_live_host_is_identified(
    monarch: Table, lost: dict[str, int], crash: str
) -> None:
    running(monarch).tell(1, worker="lost", worker_why="its process ended", **lost)
    end = monarch.finish()
    assert (end["reason"], end["crash"]) == ("WORKER_LOST", crash)


def test_a_host_that_falls_silent_is_no_crash(monarch: Table) -> None:
    running(monarch).attempt.peer_is_silent(1)
    assert monarch.finish()["crash"] == ""


def test_a_plain_job_does_not_wait_for_workers(plain: Table) -> None:
    plain.all_report(setup=0)
    # The node itself answers the goal "workers" of a plain job at once.
    plain.tell(0)
    assert plain.requested == ["setup", "workers", "run"]


@pytest.mark.feature("S0.3")
def test_every_stage_is_reported_in_order_with_its_begin_and_end(monarch: Table) -> None:
    running(monarch).tell(0, run=0)
    monarch.finish()
    reported = [(frame["stage"], frame["phase"]) for frame in monarch.frames("stage")]
    assert reported == [
        (stage, phase)
        for stage in ("setup", "workers", "run", "teardown")
        for phase in ("begin", "end")
    ]
    assert all(frame["ok"] for frame in monarch.frames("stage"))
    times = [frame["t"] for frame in monarch.frames("stage")]
    assert times == sorted(times)
    assert monarch.end["reason"] == "COMPLETED"
    assert monarch.over == [True]


def test_the_stage_in_which_it_failed_says_why(monarch: Table) -> None:
    monarch.tell(0, setup=0)
    monarch.tell(1, setup=3, evidence="no such package")
    frames = {(frame["stage"], frame["phase"]): frame for frame in monarch.frames("stage")}
    assert not frames["setup", "end"]["ok"]
    assert "rank 1" in frames["setup", "end"]["detail"]
    assert monarch.finish()["evidence"] == "no such package"


def test_the_end_waits_for_every_node_and_is_reported_once(plain: Table) -> None:
    running(plain).tell(1, run=4)
    plain.tell(1, run=4, ended=True)
    plain.tell(0, run=143, ended=True)
    assert plain.over == []
    plain.tell(2, run=143, ended=True)
    plain.tell(2, run=143, ended=True)
    assert plain.over == [True]
    assert (plain.end["reason"], plain.end["exit_code"]) == ("USER_CODE", 4)
    assert json.loads(plain.folder.verdict.read_text())["exit_code"] == 4


def test_an_attempt_that_counts_as_over_has_its_last_frame_in_the_journal(
    plain: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(point: str) -> None:
        assert point != "runner.verdict", "killed here"

    monkeypatch.setattr("monarch_client.runner.attempt.attempt.reach", die)
    plain.all_report(setup=0)
    plain.all_report(run=0)
    with pytest.raises(AssertionError, match="killed here"):
        plain.all_report(ended=True)
    # The runner after it would say nothing more where it finds a verdict.
    assert plain.end["reason"] == "COMPLETED"
    assert not plain.folder.verdict.exists()


def test_a_plain_job_is_complete_when_all_ranks_are(plain: Table) -> None:
    running(plain).tell(2, run=0)
    plain.tell(0, run=0)
    assert plain.attempt.goal == "run"
    plain.tell(1, run=0)
    assert plain.finish()["reason"] == "COMPLETED"


def test_a_plain_job_that_raised_names_its_exception_and_keeps_the_whole_traceback(
    plain: Table,
) -> None:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/tmp/workdir/train.py", line 8, in <module>\n'
        "ValueError: shard 3 is corrupt: bad magic number\n"
    )
    running(plain).tell(2, run=1, evidence=f"step 2\n{trace}" + "progress 71 %\n" * 400)
    end = plain.finish()
    assert (end["reason"], end["exit_code"]) == ("USER_CODE", 1)
    what = "raised ValueError: shard 3 is corrupt: bad magic number at train.py:8."
    assert end["message"].startswith("The program on rank 2 (")
    assert end["message"].endswith(what)
    assert end["evidence"].startswith(trace)


def test_a_traceback_explains_no_exit_code_of_the_programs_own(plain: Table) -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 8, in f\nValueError: 3\n'
    running(plain).tell(2, run=3, evidence=f"{trace}Gave up")
    assert plain.finish()["message"].endswith("returned exit code 3.")


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        ({"setup": 2}, "SETUP", "exit code 2"),
        ({"setup": None, "setup_late": True}, "SETUP", "did not finish"),
        ({"worker": "failed", "worker_why": "it was slow"}, "WORKER_NEVER_READY", "it was slow"),
        ({"worker": "lost", "worker_why": "its process died"}, "WORKER_LOST", "its process died"),
        ({"worker": "lost", "oom": True}, "OOM", "memory"),
        (
            {"stopped_by": "SIGTERM"},
            "CANCELLED_BY_USER",
            "rank 2 (10.0.0.3) was stopped by SIGTERM",
        ),
    ],
)
def test_each_failure_of_a_node_ends_the_attempt(
    monarch: Table, state: dict[str, Any], reason: str, words: str
) -> None:
    monarch.tell(2, **state)
    assert monarch.attempt.goal == "end"
    end = monarch.finish()
    assert end["reason"] == reason
    assert words in end["message"]


def test_workers_with_different_pythons_end_the_attempt_before_the_driver(monarch: Table) -> None:
    monarch.all_report(setup=0)
    monarch.tell(1, worker="ready", python="3.11")
    monarch.tell(2, worker="ready", python="3.12")
    assert monarch.requested[-1] == "end"
    assert monarch.finish()["reason"] == "PYTHON_MISMATCH"


def test_a_worker_that_was_shut_down_by_its_driver_is_not_lost(monarch: Table) -> None:
    running(monarch).tell(1, worker="exited", python="3.11")
    assert monarch.attempt.goal == "run"
    monarch.tell(0, run=0)
    assert monarch.finish()["reason"] == "COMPLETED"


def test_the_first_verdict_stands(monarch: Table) -> None:
    running(monarch).tell(1, worker="lost", worker_why="its process died")
    monarch.tell(0, run=1)
    assert monarch.finish()["reason"] == "WORKER_LOST"


def test_a_silent_peer_is_lost_and_no_other_rank_waits_for_it(monarch: Table) -> None:
    running(monarch)
    monarch.attempt.peer_is_silent(2)
    (loss,) = [frame for frame in monarch.frames("worker") if frame["status"] == "LOST"]
    assert loss["about"] == 2
    monarch.tell(0, ended=True)
    monarch.tell(1, ended=True)
    assert monarch.end["reason"] == "WORKER_LOST"
    assert "rank 2" in monarch.end["message"]


def test_a_silence_after_the_end_changes_nothing(plain: Table) -> None:
    running(plain).tell(1, run=4)
    plain.tell(2, ended=True)
    plain.attempt.peer_is_silent(2)
    assert plain.frames("worker") == []


def test_a_node_that_never_joins_ends_the_attempt(tmp_path: Path) -> None:
    table = Table(tmp_path, timeouts={"workers_s": 0.01, "grace_s": 0.01})
    table.tell(0, setup=0)
    table.tell(1)
    table.loop.call_later(0.05, table.loop.stop)
    table.loop.run()
    table.tell(0, ended=True)
    table.tell(1, ended=True)
    assert table.end["reason"] == "WORKER_NEVER_READY"
    assert "rank 2 (10.0.0.3)" in table.end["message"]


def test_a_fault_waits_a_moment_for_the_death_that_explains_it(monarch: Table) -> None:
    monarch.folder.report.write_text(json.dumps({"kind": "monarch", "error": "no route"}))
    running(monarch).tell(0, run=1)
    assert monarch.attempt.goal == "run"
    monarch.tell(2, worker="lost", worker_why="its process was ended by SIGKILL")
    assert monarch.finish()["reason"] == "WORKER_LOST"


def test_a_fault_that_nothing_explains_is_monarchs(
    monarch: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monarch_client.runner.attempt.attempt._FAULT_WAITS_S", 0.0)
    monarch.folder.report.write_text(json.dumps({"kind": "monarch", "error": "no route"}))
    running(monarch).tell(0, run=1)
    monarch.loop.call_later(0.01, monarch.loop.stop)
    monarch.loop.run()
    assert monarch.finish()["reason"] == "MONARCH"


@pytest.mark.feature("S0.2")
def test_the_driver_gets_the_hosts_of_each_mesh(monarch: Table) -> None:
    running(monarch)
    plan = json.loads(monarch.folder.meshes.read_text())
    assert {
        mesh: [worker["rank"] for worker in hosts] for mesh, hosts in plan["meshes"].items()
    } == {
        "trainers": [0, 1],
        "generators": [2],
    }
    assert plan["transport"] == "tcp://10.0.0.1:0"


def test_a_runner_that_follows_a_killed_one_ends_the_stage_it_died_in(tmp_path: Path) -> None:
    running(Table(tmp_path))
    survivor = Table(tmp_path)
    survivor.folder.goal.write_text("run")
    survivor.attempt.end_after_crash()
    survivor.all_report(ended=True)
    assert survivor.end["reason"] == "WORKER_LOST"
    last_run = [frame for frame in survivor.frames("stage") if frame["stage"] == "run"][-1]
    assert (last_run["phase"], last_run["ok"]) == ("end", False)


@pytest.mark.feature("S1.5")
def test_workers_without_a_driver_end_once_the_parents_driver_has_shut_down_all(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path, meshes={"generators": 3}, serves_parent=True)
    table.all_report(setup=0)
    table.all_report(setup=0, worker="ready")
    assert table.attempt.goal == "run"
    for rank in (1, 2):
        table.tell(rank, worker="exited")
    assert table.attempt.goal == "run"
    table.tell(0, worker="exited")
    end = table.finish()
    assert (end["reason"], end["exit_code"]) == ("COMPLETED", 0)


@pytest.mark.feature("S1.5")
def test_a_worker_without_a_driver_that_dies_is_a_loss(tmp_path: Path) -> None:
    table = Table(tmp_path, meshes={"generators": 3}, serves_parent=True)
    table.all_report(setup=0)
    table.all_report(setup=0, worker="ready")
    table.tell(1, worker="lost", worker_why="its process was killed")
    assert table.finish()["reason"] == "WORKER_LOST"
