"""Commands that start something end it at signals: real signals to real processes."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monarch_client.runner.base.process_tree import started_at
from tests.programs import CHECKOUT
from tests.waiting import eventually

# A command whose portal is scripted. The files say what has happened.
COMMAND = """
import sys
from pathlib import Path
import httpx
from monarch_client.cli import attached, local_program, main
from monarch_client.cli.session import Session
from monarch_client.rest.config import Config
from tests.unit.rest.fake_portal import FakePortal, job_json, ok, page

folder, state = Path(sys.argv.pop(1)), sys.argv.pop(1)
attached._POLL_S, local_program.GRACE_S = 0.01, 1.0
portal = FakePortal()
job = job_json(status="QUEUED" if state == "starting" else "RUNNING")

def submitted(request):
    (folder / "submitting").touch()
    while state == "submitting" and not (folder / "answer").exists():
        pass
    return ok(job)(request)

def watched(request):
    (folder / "waiting").touch()
    return ok(job)(request)

def cancelled(request):
    (folder / "cancelling").touch()
    while state == "ending" and not (folder / "answer").exists():
        pass
    if state == "away":
        raise httpx.ConnectError("refused")
    (folder / "cancelled").touch()
    return ok(job)(request)

portal.on("POST /projects/rl/jobs", submitted)
portal.on("GET /projects/rl/jobs/42", watched)
portal.on("GET /projects/rl/jobs/42/attempts", page([]))
portal.on("POST /projects/rl/jobs/42/actions/cancel", cancelled)
options = {**portal.options(), "patience_s": 0.5}
main.Session = lambda: Session(Config("http://portal", "mpt_x", "rl"), options)
main.main()
"""
# A shell that waits for a program, which says that it was asked to end.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
folder = Path(sys.argv[1])

def end(number, frame):
    (folder / "asked").touch()
    if "stubborn" not in sys.argv:
        os._exit(0)

signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
(folder / "pid").write_text(str(os.getpid()))
while True:
    time.sleep(0.01)
"""
CODES = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130}
Start = Callable[..., "Command"]


class Command:
    """A command of mportal as a process, and the program that it runs."""

    def __init__(self, folder: Path, state: str, words: list[str], *, terminal: bool) -> None:
        self._folder = folder
        self._terminal, theirs = pty.openpty()
        self.errors = folder / "errors"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, str(folder), state, *words],
                env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
                stdin=theirs if terminal else subprocess.DEVNULL,
                stdout=theirs if terminal else errors,
                stderr=theirs if terminal else errors,
                start_new_session=not terminal,
                preexec_fn=(lambda: os.login_tty(0)) if terminal else None,  # noqa: PLW1509
            )
        os.close(theirs)

    def wait_for(self, name: str) -> None:
        """Wait for a file."""
        assert eventually((self._folder / name).exists), self.errors.read_text()

    def has(self, name: str) -> bool:
        """Whether there is a file."""
        return (self._folder / name).exists()

    def answer(self) -> None:
        """Have the portal answer."""
        (self._folder / "answer").touch()

    def strike(self, *numbers: int) -> int:
        """Send signals to the command alone; return its exit code."""
        for number in numbers:
            self.process.send_signal(number)
        return self.process.wait(20)

    def close_terminal(self) -> int:
        """Close the terminal, as a lost ssh session does; return the command's exit code."""
        os.close(self._terminal)
        return self.process.wait(20)

    @property
    def program_runs(self) -> bool:
        """Whether the user's program is alive."""
        pid = int((self._folder / "pid").read_text())
        return started_at(pid) is not None


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a command with a program in a state of its portal."""
    started: list[Command] = []

    def command(*words: str, state: str = "", program: str = "", terminal: bool = False) -> Command:
        file = tmp_path / "program.py"
        file.write_text(PROGRAM)
        # Without `exec` the shell would be what gets the signal.
        shell = f"{sys.executable} {file} {tmp_path} {program}; exit 0"
        argv = [*words, "--", "bash", "-c", shell]
        started.append(Command(tmp_path, state, argv, terminal=terminal))
        return started[-1]

    yield command
    for each in started:
        each.process.kill()
        each.process.wait()


@pytest.mark.parametrize("number", CODES)
def test_a_signal_ends_the_program_and_the_job(start: Start, number: int) -> None:
    command = start("dev")
    command.wait_for("pid")
    assert command.strike(number) == CODES[number]
    assert (command.has("asked"), command.program_runs) == (True, False)
    assert command.has("cancelled")


def test_a_program_that_ignores_the_signal_is_killed(start: Start) -> None:
    command = start("dev", program="stubborn")
    command.wait_for("pid")
    assert command.strike(signal.SIGTERM, signal.SIGHUP, signal.SIGTERM) in {129, 143}
    assert (command.program_runs, command.has("cancelled")) == (False, True)


def test_a_program_whose_shell_has_ended_by_the_same_signal_is_ended(start: Start) -> None:
    command = start("dev", program="stubborn")
    command.wait_for("pid")
    os.killpg(command.process.pid, signal.SIGTERM)
    assert command.process.wait(20) == 143
    assert (command.program_runs, command.has("cancelled")) == (False, True)


def test_attach_ends_its_program_and_leaves_the_job(start: Start) -> None:
    command = start("attach", "42")
    command.wait_for("pid")
    assert command.strike(signal.SIGTERM) == 143
    assert (command.has("asked"), command.program_runs) == (True, False)
    assert not command.has("cancelled")


@pytest.mark.parametrize("number", CODES)
def test_a_signal_while_the_job_starts_ends_it(start: Start, number: int) -> None:
    command = start("dev", state="starting")
    command.wait_for("waiting")
    assert command.strike(number) == CODES[number]
    assert command.has("cancelled")


def test_a_signal_while_the_job_is_submitted_ends_it(start: Start) -> None:
    command = start("dev", state="submitting")
    command.wait_for("submitting")
    command.process.terminate()
    command.answer()
    assert command.process.wait(20) == 143
    assert command.has("cancelled")


def test_a_second_signal_while_the_job_is_ended_does_not_cut_that_off(start: Start) -> None:
    command = start("dev", state="ending")
    command.wait_for("pid")
    command.process.terminate()
    command.wait_for("cancelling")
    command.process.send_signal(signal.SIGINT)
    command.process.terminate()
    command.answer()
    assert command.process.wait(20) in {130, 143, 1}
    assert command.has("cancelled")


def test_a_job_that_cannot_be_ended_is_named(start: Start) -> None:
    command = start("dev", state="away")
    command.wait_for("pid")
    assert command.strike(signal.SIGTERM) == 143
    assert not command.program_runs
    assert "Job 42 may still run: mportal cancel 42" in command.errors.read_text()


def test_a_closed_terminal_ends_the_program_and_the_job(start: Start) -> None:
    command = start("dev", terminal=True)
    command.wait_for("pid")
    assert command.close_terminal() != 0
    assert (command.program_runs, command.has("cancelled")) == (False, True)


def test_ctrl_c_at_a_terminal_is_the_programs(start: Start) -> None:
    command = start("dev", terminal=True, program="stubborn")
    command.wait_for("pid")
    os.write(command._terminal, b"\x03")
    command.wait_for("asked")
    assert (command.process.poll(), command.has("cancelled")) == (None, False)
    assert command.strike(signal.SIGTERM) == 143
    assert command.has("cancelled")
