"""Real processes, because what matters here is what the kernel does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monarch_client.runner.base import process_tree
from monarch_client.runner.base.lines import Piece
from monarch_client.runner.base.processes import Command, exit_code_of, signal_of
from tests.runner_harness import wait_until

# Runs `Children` alone in a process of its own: it becomes a subreaper and takes SIGCHLD.
_PROGRAM = """
import os, sys, time
from pathlib import Path
from monarch_client.runner.base.loop import MainLoop
from monarch_client.runner.base.process_tree import become_subreaper, descendants
from monarch_client.runner.base.processes import Children
become_subreaper()
loop = MainLoop()
children = Children(loop)
def exited(returncode):
    print("exited", returncode, flush=True)
    if "end" in sys.argv:
        children.end_all(float(sys.argv[2]), gone)
    else:
        gone()
def gone():
    print("left", len(descendants(os.getpid())), flush=True)
    loop.stop()
def pieces(stream, pieces):
    for piece in pieces:
        os.write(1, f"{stream} {piece.text}\\n".encode())
children.start(["bash", "-c", sys.argv[1]], cwd=Path("."), env=dict(os.environ),
               on_pieces=pieces, on_exit=exited)
loop.run()
"""

# The machine is taken away: SIGTERM reaches a program, and its runner when that has collected it.
_MACHINE_TAKEN = """
import os, signal, threading, time
from pathlib import Path
from monarch_client.runner.base import processes
from monarch_client.runner.base.loop import MainLoop
processes._SIGTERM_WAITS_S = 60.0
loop = MainLoop()
children = processes.Children(loop)
def stop():
    print("stop requested", flush=True)
    children.end_all(5.0, loop.stop)
signal.signal(signal.SIGTERM, lambda *_: loop.post(stop))
command = children.start(["sleep", "300"], cwd=Path("."), env=dict(os.environ),
                         on_pieces=lambda *_: None,
                         on_exit=lambda code: print("exited", code, flush=True))
def take():
    os.kill(command.pid, signal.SIGTERM)
    while command.process.returncode is None:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=take).start()
loop.run()
"""


def run_children(script: str, *arguments: str, program: str = _PROGRAM) -> list[str]:
    """Run `script` under `Children` and return what was observed, line by line."""
    result = subprocess.run(
        [sys.executable, "-c", program, script, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return result.stdout.splitlines()


def is_alive(pid: int) -> bool:
    """Whether a process runs; zombies do not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.parametrize(
    ("script", "returncode"),
    [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", -9), ("kill -TERM $$", -15)],
)
def test_exit_codes_are_exact(script: str, returncode: int) -> None:
    assert f"exited {returncode}" in run_children(script)


def test_a_program_that_is_requested_to_end_before_its_runner_has_not_failed_by_itself() -> None:
    assert run_children("", program=_MACHINE_TAKEN) == ["stop requested", "exited -15"]


def test_a_signal_counts_as_a_shell_counts_it() -> None:
    assert exit_code_of(-9) == 137
    assert exit_code_of(3) == 3
    assert signal_of(137) == signal.SIGKILL
    assert [signal_of(code) for code in (0, 1, 128, 255)] == [None] * 4


def test_all_output_is_there_before_the_exit_is_reported() -> None:
    lines = run_children("for i in $(seq 500); do echo $i; done; echo bad >&2; exit 3")
    assert lines[-2:] == ["exited 3", "left 0"]
    assert [line for line in lines if line.startswith("stdout")] == [
        f"stdout {number}" for number in range(1, 501)
    ]
    assert "stderr bad" in lines


@pytest.mark.parametrize(
    "leave_behind",
    [
        "sleep 300 &",
        "(sleep 300 &) ; (bash -c 'sleep 300 & sleep 300' &)",
        "setsid sleep 300 &",
        "setsid bash -c 'setsid sleep 300 & disown; sleep 300' &",
        "bash -c 'trap \"\" TERM; while :; do sleep 0.05; done' &",
        "sleep 300 & kill -STOP $!",
    ],
)
def test_nothing_that_a_command_left_behind_survives(leave_behind: str, tmp_path: Path) -> None:
    lines = run_children(f"cd {tmp_path}; {leave_behind}\nsleep 0.1; exit 5", "0.3", "end")
    assert lines[-2:] == ["exited 5", "left 0"]
    assert [pid for pid in process_tree._all_pids() if _cwd_of(pid) == tmp_path] == []


def _cwd_of(pid: int) -> Path | None:
    try:
        return Path(f"/proc/{pid}/cwd").readlink() if is_alive(pid) else None
    except OSError:
        return None


def test_a_program_gets_its_grace_before_it_is_killed() -> None:
    script = "bash -c 'trap \"echo tidied; exit 0\" TERM; sleep 300 & wait' & sleep 0.2; exit 0"
    assert "stdout tidied" in run_children(script, "5", "end")


def test_a_process_that_holds_the_pipe_does_not_hold_the_exit() -> None:
    started = time.monotonic()
    assert "exited 4" in run_children("sleep 3 & exit 4", "0.2", "end")
    assert time.monotonic() - started < 3


def test_a_program_that_cannot_be_started_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no-such-program"):
        Command(["no-such-program"], tmp_path, {}, lambda _stream, _pieces: None)


def test_the_last_lines_are_kept_as_evidence(tmp_path: Path) -> None:
    script = "seq 100; echo; echo Monarch internal logs are being written to x; printf %9999s y"
    command = Command(["bash", "-c", script], tmp_path, dict(os.environ), lambda *_: None)
    command.process.wait(10)
    command.drain()
    lines = command.evidence.splitlines()
    assert len(lines) <= 60
    assert "100" in lines
    assert all(len(line) <= 400 for line in lines)
    assert not any("internal logs" in line for line in lines)


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        env = {**os.environ, process_tree.NODE_MARK: str(tmp_path)}
        started.append(subprocess.Popen(["sleep", "300"], env=env, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_processes_of_a_dead_runner_are_found_by_their_mark(
    tmp_path: Path, marked: Callable[[], subprocess.Popen[bytes]]
) -> None:
    process = marked()
    wait_until(lambda: process_tree.marked_processes(tmp_path) == [process.pid])
    assert process_tree.marked_processes(tmp_path / "other") == []


def test_lines_that_are_slow_to_store_are_all_there_when_the_end_is_reported(
    tmp_path: Path,
) -> None:
    taken: list[str] = []

    def store(_stream: str, pieces: list[Piece]) -> None:
        for piece in pieces:
            time.sleep(0.0002)  # a busy machine
            taken.append(piece.text)

    command = Command(["seq", "8000"], tmp_path, os.environ, store)
    assert command.process.wait(20) == 0
    command.drain()
    assert taken[-1:] == ["8000"]
