"""The processes of nodes and jobs, found by a mark in their environment, and ended."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

NODE_MARK = "SKY_STUB_NODE"
JOB_MARK = "SKY_STUB_JOB"
PROC = Path("/proc")


def marked(mark: str, value: Path) -> set[int]:
    """Find the processes that carry the mark, and all their descendants.

    Some descendants have emptied their environment. `value` is a node's or a job's folder, or a
    folder above it.
    """
    return those(lambda pid: _carries(pid, mark, os.fsencode(value)))


def those(is_one: Callable[[int], bool]) -> set[int]:
    """Find the processes for which `is_one` is true, and all their descendants; never ourselves."""
    parents = _parents()
    found = {pid for pid in parents if is_one(pid)}
    grows = bool(found)
    while grows:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grows = bool(more)
    return found - {os.getpid()}


def end(mark: str, value: Path) -> None:
    """Kill all marked processes until none is left.

    They are stopped first, so that none sees another end.
    """
    end_all(lambda: marked(mark, value))


def end_all(find: Callable[[], set[int]]) -> None:
    """Kill the processes that `find` returns until it returns none. They are stopped first."""
    while pids := find():
        send(pids, signal.SIGSTOP)
        send(pids | find(), signal.SIGKILL)
        _wait_for(pids)


def send(pids: set[int], number: signal.Signals) -> None:
    """Send a signal to each process that still exists."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def lives(pid: int, started: str) -> bool:
    """Whether the process that began at `started` (see `start_of`) still runs."""
    return bool(started) and start_of(pid) == started


def start_of(pid: int) -> str:
    """Return when a process began, in ticks since the boot; "" for a dead one."""
    fields = _stat(pid)
    return "" if not fields or fields[0] in {"Z", "X"} else fields[19]


def _wait_for(pids: set[int]) -> None:
    """Wait until each process is dead; a zombie that another process must reap counts as dead."""
    for pid in pids:
        with suppress(OSError):
            fd = os.pidfd_open(pid)
            try:
                _has_ended(fd)
            finally:
                os.close(fd)


def _has_ended(fd: int, timeout_s: float = 5) -> bool:
    """Whether the process behind a pidfd ended in time."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def _parents() -> dict[int, int]:
    """Map each living process to its parent."""
    pids = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    stats = ((pid, _stat(pid)) for pid in pids)
    return {pid: int(fields[1]) for pid, fields in stats if fields and fields[0] not in {"Z", "X"}}


def _stat(pid: int) -> list[str]:
    with suppress(OSError):
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return []


def _carries(pid: int, mark: str, value: bytes) -> bool:
    with suppress(OSError):
        environment = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        start = mark.encode() + b"=" + value
        return any(each == start or each.startswith(start + b"/") for each in environment)
    return False
