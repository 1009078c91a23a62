"""`mportal ssh` on the nodes of a real plain job: commands, terminals, ports, and what remains."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import httpx
import pytest

from tests.acceptance.test_jobs import newest
from tests.portal_process import PortalProcess
from tests.runner_harness import free_port
from tests.waiting import eventually

pytestmark = [pytest.mark.timeout(300), pytest.mark.feature("S3.4")]
WAIT_S = 30.0


class Shells:
    """A portal with a running plain job of two nodes, whose rank 1 serves its folder by http."""

    def __init__(self, portal: PortalProcess) -> None:
        self.portal = portal
        self.web_port = free_port()
        script = f"[ $MPORTAL_RANK = 0 ] || python -m http.server --bind 127.0.0.1 {self.web_port}"
        job = {
            "name": "shells",
            "num_nodes": 2,
            "run": f"echo page > page.txt; {script}; sleep 600",
        }
        file = Path(portal.root, "job.yaml")
        file.write_text(json.dumps(job))
        submitted = portal.mportal("submit", "-f", str(file))
        assert submitted.returncode == 0, submitted.stderr
        is_running = lambda: newest(portal, "shells")["status"] == "RUNNING"  # noqa: E731
        assert eventually(is_running, timeout_s=120), portal.logs()

    @contextmanager
    def started(self, *arguments: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
        """Start `mportal ssh` for the job; kill it at the end."""
        argv = [str(Path(sys.executable).with_name("mportal")), "ssh", "shells", *arguments]
        account = {"MPORTAL_URL": self.portal.url, "MPORTAL_TOKEN": self.portal.token}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        environment = {**self.portal.environment, **account, "TERM": "xterm"}
        process = subprocess.Popen(argv, env=environment, **{**pipes, **options})  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def run(self, *arguments: str, given: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run `mportal ssh` to its end; its exit code, output and errors."""
        with self.started(*arguments) as process:
            output, errors = process.communicate(given, 100)
            return process.returncode, output, errors


@pytest.fixture(scope="module")
def shells() -> Iterator[Shells]:
    portal = PortalProcess()
    try:
        portal.start()
        yield Shells(portal)
    finally:
        portal.close()


def pids_of(word: str) -> list[int]:
    """Return the processes whose arguments contain the word, zombies excepted."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                if word.encode() in arguments:
                    found.append(int(entry.name))
    return found


def test_a_command_runs_in_the_job_with_its_exit_code_and_is_listed(shells: Shells) -> None:
    words = "echo $MPORTAL_RANK $MPORTAL_PROJECT; cat page.txt; type -p python3; exit 7"
    code, output, errors = shells.run("--rank", "1", "--", words)
    assert (code, errors) == (7, b"")
    rank, page, python = output.decode().splitlines()
    assert (rank, page) == ("1 default", "page")
    # That of the job's environment.
    assert python.endswith("/python/bin/python3")
    assert shells.run("--", "printf", "%s|", "a b", "*")[1] == b"a b|*|"
    assert shells.run(given=b"echo from standard input\n")[1] == b"from standard input\n"
    code, output, errors = shells.run("--rank", "2", "--", "true")
    assert (code, output) == (2, b"")
    assert b"has no node 2; it has nodes 0 to 1." in errors
    listed = shells.portal.mportal("sessions", str(newest(shells.portal, "shells")["id"]), "--all")
    assert "node 1, echo $MPORTAL_RANK" in listed.stdout


def test_binary_input_and_output_of_50_mb_come_back_as_they_were(shells: Shells) -> None:
    data = os.urandom(1_000_000) * 50
    code, output, _ = shells.run("--", "cat", given=data)
    assert code == 0
    assert hashlib.sha256(output).digest() == hashlib.sha256(data).digest()


class Terminal:
    """A terminal of this machine, in which a program runs."""

    def __init__(self) -> None:
        self.here, self.there = os.openpty()
        self.resize(33, 101)
        self.shown = b""

    def options(self) -> dict[str, object]:
        ends = dict.fromkeys(("stdin", "stdout", "stderr"), self.there)
        take = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # noqa: E731
        return {**ends, "start_new_session": True, "preexec_fn": take}

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.here, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: bytes) -> None:
        self.shown = b""
        os.write(self.here, text)

    def until(self, text: bytes) -> None:
        while text not in self.shown:
            self.shown += os.read(self.here, 65536)

    def close(self) -> None:
        os.close(self.here)
        os.close(self.there)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def test_an_interactive_shell_has_a_terminal_of_the_same_size_and_its_keys(
    shells: Shells, terminal: Terminal
) -> None:
    with shells.started("--rank", "1", **terminal.options()) as process:
        terminal.until(b"node 1] ")
        terminal.type(b"stty size; tty\n")
        terminal.until(b"/dev/pts/")
        assert b"33 101" in terminal.shown
        terminal.resize(44, 99)
        terminal.type(b"while ! stty size | grep 44; do :; done\n")
        terminal.until(b"44 99")
        terminal.type(b"sh -c 'echo u\"\"p; exec sleep 600'\n")
        terminal.until(b"up\r\n")
        terminal.type(b"\x03")
        terminal.until(b"node 1] ")
        terminal.type(b"exit 5\n")
        assert process.wait(WAIT_S) == 5
    # The terminal is as it was: it shows what is typed, and Ctrl-C is a signal again.
    assert termios.tcgetattr(terminal.there)[3] & (termios.ECHO | termios.ISIG)


def test_signals_reach_the_command_and_a_killed_laptop_leaves_nothing(shells: Shells) -> None:
    with shells.started(
        "--", "trap 'exit 9' INT; echo up; while :; do sleep 0.05; done"
    ) as process:
        assert piped(process.stdout).readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 9
    word = "60606"
    command = f"setsid sleep {word} & trap '' HUP TERM; echo up; sleep {word}; sleep {word}"
    with shells.started("--rank", "1", "--", command) as process:
        assert piped(process.stdout).readline() == b"up\n"
        assert eventually(lambda: len(pids_of(word)) == 2)
        process.kill()
    assert eventually(lambda: not pids_of(word), timeout_s=WAIT_S)


def piped(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def test_forwarded_ports_lead_to_another_ranks_loopback_and_dial_anew(shells: Shells) -> None:
    to = ["-L", f"0:localhost:{shells.web_port}", "-L", "127.0.0.1:0:127.0.0.1:1"]
    with shells.started("--rank", "1", "-N", *to) as process:
        lines = [piped(process.stderr).readline().decode() for _ in range(2)]
        ports = [line.split()[0].rpartition(":")[2] for line in lines]
        page, nowhere = (f"http://127.0.0.1:{port}/page.txt" for port in ports)
        with httpx.Client() as one, httpx.Client() as other:
            assert eventually(lambda: answers(lambda: one.get(page)))
            assert [client.get(page).text for client in (one, other, one)] == ["page\n"] * 3
            with pytest.raises(httpx.TransportError):
                other.get(nowhere)
        assert b"cannot connect to 127.0.0.1:1" in piped(process.stderr).readline()
        # Streams break with the gateway; new connections get new ones.
        shells.portal.kill("gateway")
        assert eventually(lambda: answers(lambda: httpx.get(page)), timeout_s=60)
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 130


def answers(call: Callable[[], httpx.Response]) -> bool:
    with suppress(httpx.TransportError):
        return call().is_success
    return False


def test_a_shell_whose_connection_breaks_ends_with_a_message(shells: Shells) -> None:
    with shells.started("--", "echo up; sleep 70707") as process:
        assert piped(process.stdout).readline() == b"up\n"
        shells.portal.kill("gateway")
        assert process.wait(WAIT_S) == 255
        assert b"The connection to node 0 was lost" in piped(process.stderr).read()
    assert eventually(lambda: not pids_of("70707"), timeout_s=WAIT_S)
