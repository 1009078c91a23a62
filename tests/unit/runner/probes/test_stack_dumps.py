"""Stack dumps by real py-spy, of real processes; and by stand-ins for what it may say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.base.config import NodeFolder, _parse
from monarch_client.runner.base.process_tree import descendants, started_at
from monarch_client.runner.journal.journal import Journal
from monarch_client.runner.journal.recorder import Recorder
from monarch_client.runner.journal.samples import Samples
from monarch_client.runner.place import Place
from monarch_client.runner.probes import py_spy, stack_dumps
from monarch_client.runner.probes.stack_dumps import StackDumps, Target
from monarch_client.runner.vocabulary.stack_requests import StackRequest, parse_stack_requests
from tests.runner_harness import wait_until
from tests.unit.runner.base.test_config import MINIMAL

PROGRAM = """
import threading
def waits_for_nobody():
    print("ready", flush=True)
    threading.Event().wait()
waits_for_nobody()
"""


class Dumping:
    """The dumps of a rank, with their frames."""

    def __init__(self, folder: Path, **config: Any) -> None:
        self.journal = Journal(folder / "journal")
        unused: Any = None
        settings = _parse({**MINIMAL, "python": sys.executable, **config})
        recorder = Recorder(self.journal, 0)
        node = NodeFolder(folder / "node")
        self.dumps = StackDumps(Place(settings, 0, node, unused, unused, recorder, Samples()))

    def frames(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journal.peek(1 << 30)]

    def answer(self, request: StackRequest) -> list[dict[str, Any]]:
        """Request a dump and wait for its frames: those of processes, then the end."""
        self.dumps.request([request])
        wait_until(lambda: any(f.get("done") and f["ask"] == request.id for f in self.frames()), 60)
        return [frame for frame in self.frames() if frame["ask"] == request.id]


@pytest.fixture
def made() -> list[subprocess.Popen[bytes]]:
    """Return the programs that a test has started."""
    return []


@pytest.fixture(autouse=True)
def only_ours(made: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the dumps to this test's programs: other tests have children here as well."""

    def below(_: int) -> list[int]:
        return [pid for each in made for pid in (each.pid, *descendants(each.pid))]

    monkeypatch.setattr(stack_dumps, "descendants", below)


@pytest.fixture
def start(
    made: list[subprocess.Popen[bytes]],
) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start programs that wait, as children of this process."""

    def begin(*argv: str, **options: Any) -> subprocess.Popen[bytes]:
        argv = argv or (sys.executable, "-c", PROGRAM)
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, **options)
        made.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    yield begin
    for process in made:
        process.kill()
        process.communicate()


def stand_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a program in place of py-spy."""
    program = folder / "py-spy"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    monkeypatch.setattr(py_spy, "find", lambda _place, _pid: str(program))


def test_the_stuck_function_is_named_and_the_program_goes_on(tmp_path: Path, start) -> None:
    child = start()
    reported, end = Dumping(tmp_path).answer(StackRequest(1, 0))
    assert "waits_for_nobody (<string>:5)" in reported["text"]
    assert (reported["pid"], reported["why"]) == (child.pid, "")
    assert reported["command"].startswith(f"{sys.executable} -c")
    assert (end["done"], end["why"], end["left_out"]) == (True, "", 0)
    assert child.poll() is None


def test_a_process_below_a_shell_is_found_and_the_shell_is_none(tmp_path: Path, start) -> None:
    env = {**os.environ, "PROGRAM": PROGRAM, "PYTHON": sys.executable}
    shell = start("sh", "-c", '"$PYTHON" -c "$PROGRAM"; true', env=env)
    reported, _ = Dumping(tmp_path).answer(StackRequest(1, 0))
    assert reported["pid"] != shell.pid
    assert "waits_for_nobody" in reported["text"]
    os.kill(reported["pid"], 9)


def test_an_ask_that_is_repeated_is_answered_once(tmp_path: Path, start) -> None:
    start()
    dumping = Dumping(tmp_path)
    first = dumping.answer(StackRequest(1, 0))
    dumping.dumps.request([StackRequest(1, 0), StackRequest(1, 0)])
    dumping.answer(StackRequest(2, 0))
    assert [frame for frame in dumping.frames() if frame["ask"] == 1] == first


def test_one_process_can_be_requested(tmp_path: Path, start) -> None:
    _, wanted = start(), start()
    reported, _ = Dumping(tmp_path).answer(StackRequest(1, 0, wanted.pid))
    assert reported["pid"] == wanted.pid


@pytest.mark.parametrize(
    "pid",
    [os.getpid(), os.getppid(), 1, 2**31 - 1],
    ids=["the runner", "its parent", "the first", "none"],
)
def test_a_process_that_is_not_the_jobs_is_never_looked_at(
    tmp_path: Path, monkeypatch, start, pid: int
) -> None:
    start()
    looks: list[int] = []
    monkeypatch.setattr(py_spy, "look_at", lambda _program, each: looks.append(each))
    (end,) = Dumping(tmp_path).answer(StackRequest(1, 0, pid))
    assert end["why"] == f"Process {pid} is no Python process of this job on rank 0."
    assert looks == []


def test_a_number_that_belongs_to_another_process_by_now_is_not_looked_at(
    monkeypatch, start
) -> None:
    child = start()
    monkeypatch.setattr(py_spy, "look_at", lambda *_: pytest.fail("looked at a stranger"))
    target = Target(child.pid, (started_at(child.pid) or 0) - 1, "python")
    assert stack_dumps._look_at(target, "py-spy").why == "It has ended."


def test_without_any_python_process_that_is_said(tmp_path: Path) -> None:
    (end,) = Dumping(tmp_path).answer(StackRequest(1, 0))
    assert end["why"] == "No Python process of this job runs on rank 0."


def test_without_py_spy_it_says_how_to_add_it(tmp_path: Path, start) -> None:
    plain = str(Path(sys.executable).resolve())
    start(plain, "-c", PROGRAM, env={"PATH": "/nowhere"})
    dumping = Dumping(tmp_path, python="no-such-python", envs={"PATH": "/nowhere"})
    (end,) = dumping.answer(StackRequest(1, 0))
    assert "pip install py-spy" in end["why"]


def test_py_spy_on_the_jobs_path_is_found(tmp_path: Path, start) -> None:
    plain = str(Path(sys.executable).resolve())
    start(plain, "-c", PROGRAM, env={"PATH": "/nowhere"})
    path = str(Path(sys.executable).parent)
    dumping = Dumping(tmp_path, python="no-such-python", envs={"PATH": path})
    assert "waits_for_nobody" in dumping.answer(StackRequest(1, 0))[0]["text"]


def test_forbidden_ptrace_is_said_with_what_to_do(tmp_path: Path, monkeypatch, start) -> None:
    start()
    scope = tmp_path / "scope"
    scope.write_text("1\n")
    monkeypatch.setattr(py_spy, "_SCOPE", scope)
    stand_in(tmp_path, "echo Permission Denied: Try with sudo >&2; exit 1", monkeypatch)
    reported, _ = Dumping(tmp_path).answer(StackRequest(1, 0))
    assert reported["text"] == ""
    assert "SYS_PTRACE" in reported["why"]
    assert "ptrace_scope is 1 here" in reported["why"]


def test_other_obstacles_to_py_spy_are_reported(tmp_path: Path, monkeypatch, start) -> None:
    start()
    stand_in(tmp_path, "echo Error: Failed to find python version; echo trace", monkeypatch)
    reported, _ = Dumping(tmp_path).answer(StackRequest(1, 0))
    assert reported["why"] == "py-spy says: Error: Failed to find python version"


def test_a_py_spy_that_hangs_is_given_up_and_ended(tmp_path: Path, monkeypatch, start) -> None:
    start()
    monkeypatch.setattr(py_spy, "_MOST_S", 2.0)
    stand_in(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600", monkeypatch)
    began_at = time.monotonic()
    reported, _ = Dumping(tmp_path).answer(StackRequest(1, 0))
    assert reported["why"] == "py-spy did not end within 2 s."
    assert time.monotonic() - began_at < 30
    assert started_at(int((tmp_path / "pid").read_text())) is None


def test_a_look_that_fails_at_a_busy_program_is_taken_again(
    tmp_path: Path, monkeypatch, start
) -> None:
    start()
    once = f"[ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; echo Error: busy; exit 1; }}\n"
    stand_in(tmp_path, once + "echo Process 1; echo 'Thread 1 (idle)'", monkeypatch)
    reported, _ = Dumping(tmp_path).answer(StackRequest(1, 0))
    assert reported["text"] == "Process 1\nThread 1 (idle)"


def test_text_without_end_is_cut_in_whole_lines(tmp_path: Path, monkeypatch, start) -> None:
    start()
    stand_in(tmp_path, "echo Process 1; echo Thread 1; exec yes 'a frame (a.py:1)'", monkeypatch)
    reported, _ = Dumping(tmp_path).answer(StackRequest(1, 0))
    lines = reported["text"].splitlines()
    assert len(reported["text"]) <= 60_000
    assert lines[-1].startswith("[cut here")
    assert set(lines[2:-1]) == {"a frame (a.py:1)"}


def test_of_many_processes_some_are_left_out_and_counted(
    tmp_path: Path, monkeypatch, start
) -> None:
    start(), start(), start()
    monkeypatch.setattr(stack_dumps, "MAX_DUMP_PROCESSES", 2)
    *reported, end = Dumping(tmp_path).answer(StackRequest(1, 0))
    assert (len(reported), end["left_out"]) == (2, 1)


def test_a_process_that_is_none_of_the_jobs_is_not_reported(tmp_path: Path, start) -> None:
    ours, other = start(), start()
    dumping = Dumping(tmp_path)
    dumping.dumps.leave_out = lambda: [None, other.pid]
    *reported, end = dumping.answer(StackRequest(1, 0))
    assert ([each["pid"] for each in reported], end["left_out"]) == ([ours.pid], 0)
    (end,) = dumping.answer(StackRequest(2, 0, other.pid))
    assert end["why"]


def test_whatever_fails_is_an_answer(tmp_path: Path, monkeypatch) -> None:
    def fail() -> list[Target]:
        raise OSError("no /proc here")

    dumping = Dumping(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(stack_dumps, "python_processes", fail)
        (end,) = dumping.answer(StackRequest(1, 0))
    assert "no /proc here" in end["why"]
    assert dumping.answer(StackRequest(2, 0))[-1]["done"]


def test_after_the_last_frame_nothing_is_reported(tmp_path: Path, start) -> None:
    start()
    dumping = Dumping(tmp_path)
    dumping.dumps.stop()
    dumping.dumps.request([StackRequest(1, 0)])
    assert dumping.dumps._thread is not None
    dumping.dumps._thread.join(20)
    assert dumping.frames() == []


@pytest.mark.parametrize("raw", [None, 7, "x", {}, [None], [{"id": 1}], [{"id": "x", "rank": 0}]])
def test_an_answer_that_cannot_be_read_asks_for_nothing(raw: Any) -> None:
    assert parse_stack_requests(raw) == []


def test_what_a_newer_portal_adds_is_left_out() -> None:
    raw = [{"id": 4, "rank": 2, "pid": None, "proc": "x"}, {"id": 5, "rank": 0, "pid": 7}]
    assert parse_stack_requests(raw) == [StackRequest(4, 2), StackRequest(5, 0, 7)]
