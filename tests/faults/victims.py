"""Finding the real processes of a portal and of its jobs, and striking them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.portal_process import PortalProcess

PORTAL_PARTS = ("web", "worker", "beat", "follower", "gateway", "redis", "postgres")
# How long a stopped process stays so: longer than a tick of beat takes to find its work undone,
# shorter than all limits after which a process is given up.
STILL_S = 1.5
PROC = Path("/proc")


def part_of(portal: PortalProcess, name: str) -> list[int]:
    """Find a part of the portal; a server with the processes that serve its clients."""
    pid = portal.pids()[name]
    return [pid, *children_of(pid)] if name == "postgres" else [pid]


def runner_on(node: Path) -> list[int]:
    """Find the runner proper of a node: the child, if its guardian has one."""
    pids = processes_naming(node)
    children = [pid for pid in pids if parent_of(pid) in pids]
    return children or pids


def guardian_on(node: Path) -> list[int]:
    """Find the process that guards the runner of a node."""
    pids = processes_naming(node)
    return [pid for pid in pids if parent_of(pid) not in pids]


def host(node: Path) -> list[int]:
    """Find every process of a node, as if the node lost its power."""
    mark = b"MPORTAL_NODE_ROOT=" + os.fsencode(node)
    started = [pid for pid in all_pids() if mark in read(pid, "environ").split(b"\0")]
    return sorted({*processes_naming(node), *started})


def processes_naming(node: Path) -> list[int]:
    """Find the runner of a node with its guardian, by their command line."""
    words = [b"--root", os.fsencode(node)]
    found = []
    for pid in all_pids():
        argv = read(pid, "cmdline").split(b"\0")
        if any(argv[index : index + 2] == words for index in range(len(argv))):
            found.append(pid)
    return found


def children_of(parent: int) -> list[int]:
    """List the living children of a process."""
    return [pid for pid in all_pids() if parent_of(pid) == parent]


def all_pids() -> list[int]:
    """List every process of this machine."""
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def parent_of(pid: int) -> int | None:
    """Return the parent of a living process; None for a dead one."""
    fields = read(pid, "stat").rpartition(b")")[2].split()
    return None if not fields or fields[0] in (b"Z", b"X") else int(fields[1])


def read(pid: int, name: str) -> bytes:
    """Read a file of a process in /proc; b"" when the process does not exist."""
    with suppress(OSError):
        return (PROC / str(pid) / name).read_bytes()
    return b""


def kill(pids: list[int]) -> None:
    """Kill all of them at once with SIGKILL: none sees another fall."""
    send(pids, signal.SIGSTOP)
    send(pids, signal.SIGKILL)


@contextmanager
def stopped(pids: list[int], still_s: float = STILL_S) -> Iterator[None]:
    """Stop the processes, and continue them some time after the block."""
    send(pids, signal.SIGSTOP)
    try:
        yield
        # This is the fault itself, not a wait for something.
        threading.Event().wait(still_s)
    finally:
        send(pids, signal.SIGCONT)


def send(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to each that is still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
