"""Starting and stopping one child process. What the child is for is its starter's business."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from monarch_portal.embedded.account import Account, ourselves

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Process(Protocol):
    """The common interface of a started program and a forked role."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit code; TimeoutExpired after `timeout` seconds."""

    def send_signal(self, sig: int) -> None:
        """Send a signal; nothing if it has ended."""


@dataclass(frozen=True, slots=True)
class Program:
    """A command, its account and its directory. If its starter is killed, it gets `on_orphaned`."""

    argv: Sequence[str]
    log: Path
    account: Account = field(default_factory=ourselves)
    env: Mapping[str, str] | None = None
    on_orphaned: signal.Signals = signal.SIGTERM
    cwd: Path = Path("/")
    umask: int = -1  # that of its starter


def start(program: Program) -> Process:
    """Start `program` in a session of its own, its output appended to its log file."""
    parent = os.getpid()

    def before_exec() -> None:
        signal_when_orphaned(program.on_orphaned, parent)

    switch = program.account.changes
    with program.log.open("ab") as log:
        return subprocess.Popen(
            list(program.argv),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=program.cwd,
            umask=program.umask,
            env=dict(program.env) if program.env is not None else None,
            start_new_session=True,  # Ctrl-C in a terminal reaches the starter alone
            user=program.account.uid if switch else None,
            group=program.account.gid if switch else None,
            extra_groups=[] if switch else None,
            # Only system calls after the fork, and the starters have no threads.
            preexec_fn=before_exec,  # noqa: PLW1509
        )


def signal_when_orphaned(number: signal.Signals, parent: int) -> None:
    """Have the kernel send `number` to this child when `parent` ends, even if it is killed."""
    _libc.prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def redirect_output(log: Path) -> None:
    """Have this process read nothing and print to the end of `log`."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)


def stop(process: Process, *, signals: Sequence[signal.Signals], patience_s: float) -> None:
    """Send each signal in turn, waiting `patience_s` after each, and SIGKILL at last."""
    for number in (*signals, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue


def wait_until_ready(process: Process, is_ready: Callable[[], bool], *, timeout_s: float) -> bool:
    """Whether `is_ready` came true while the process lived and before the time-out."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and process.poll() is None:
        if is_ready():
            return True
        time.sleep(0.02)
    return False


def tail(log: Path, lines: int = 15) -> str:
    """Return the last lines of a log file, for an error message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
