"""List and end trees of processes, as the kernel knows them.

A process that leaves its group and session still ends up as a descendant of the runner, because
the runner is its subreaper (Linux).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Sequence

# The variable that marks the processes of a runner with the node's directory.
NODE_MARK = "MPORTAL_NODE_ROOT"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Of /proc/PID/stat, counted from the state.
_PARENT, _SESSION, _START_TIME = 1, 3, 19


def become_subreaper() -> None:
    """Inherit orphaned descendants. Without Linux this does nothing."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def be_signalled_when_parent_dies(number: int) -> None:
    """Have the kernel send signal `number` when the parent ends. Linux only."""
    _prctl(_PR_SET_PDEATHSIG, number)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _all_pids() -> list[int]:
    """Return the processes of this machine; none without Linux."""
    try:
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def descendants(ancestor: int) -> list[int]:
    """Return the live processes below `ancestor`, without zombies."""
    children: dict[int, list[int]] = {}
    for pid in _all_pids():
        parent = _parent_of(pid)
        if parent is not None:
            children.setdefault(parent, []).append(pid)
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def descends_from(pid: int, ancestor: int) -> bool:
    """Whether a live process is below `ancestor`."""
    parent = _parent_of(pid)
    while parent is not None and parent > 1:
        if parent == ancestor:
            return True
        parent = _parent_of(parent)
    return False


def started_at(pid: int) -> int | None:
    """Return the start of a process in ticks since boot; None if it has ended.

    A process id and its start identify a process.
    """
    fields = _stat_of(pid)
    return int(fields[_START_TIME]) if fields else None


def _parent_of(pid: int) -> int | None:
    """Return the parent of a live process; None if it has ended or is a zombie."""
    fields = _stat_of(pid)
    return int(fields[_PARENT]) if fields else None


def _stat_of(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; [] if the process has ended."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return []
    # The name in brackets may hold blanks and brackets itself.
    fields = stat.rpartition(")")[2].split()
    return [] if fields[0] in "ZX" else fields


def marked_processes(root: Path) -> list[int]:
    """Return the processes that the runner of node directory `root` started."""
    return processes_with(NODE_MARK, str(root))


def processes_with(variable: str, value: str) -> list[int]:
    """Return the processes that were started with this value of an environment variable."""
    mark = f"{variable}={value}".encode()
    found = []
    for pid in _all_pids():
        with contextlib.suppress(OSError):
            if mark in Path("/proc", str(pid), "environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def members_of_session(leader: int) -> list[int]:
    """Return the live processes of the session that a process leads, or has led."""
    found = []
    for pid in _all_pids():
        fields = _stat_of(pid)
        if fields and int(fields[_SESSION]) == leader:
            found.append(pid)
    return found


def signal_all(pids: Sequence[int], number: int) -> None:
    """Send a signal to each process; skip those that have ended or belong to other users."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_descendants() -> None:
    """Kill all processes below this one, repeatedly until none is left."""
    below = descendants(os.getpid())
    while below:
        # Stopped processes cannot start new ones while we go through the list.
        signal_all(below, signal.SIGSTOP)
        signal_all(below, signal.SIGKILL)
        reap_strays()
        below = [pid for pid in descendants(os.getpid()) if _is_killable(pid)]


def _is_killable(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def reap_strays() -> None:
    """Reap every exited child."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def reap_others_until_end_of(child: int) -> None:
    """Wait for the end of a child, which is left to its owner; reap others that end meanwhile.

    For a subreaper that waits for one child. Without Linux this may return at once.
    """
    with contextlib.suppress(ChildProcessError, AttributeError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            if ended is None or ended.si_pid == child:
                return
            os.waitpid(ended.si_pid, 0)
