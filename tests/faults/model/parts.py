"""The processes of a portal, to be killed, stopped briefly, and found whole again."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.portal_process import PortalProcess
from tests.waiting import eventually

# Without these no request is answered.
VITAL = ("web", "postgres")
BREAKABLE = (*VITAL, "worker", "beat", "follower", "gateway", "redis")
EVERY = {*BREAKABLE, "supervisor"}


class Parts:
    """A breaker of single processes of a running portal."""

    def __init__(self, portal: PortalProcess) -> None:
        self._portal = portal
        self._frozen: dict[str, list[int]] = {}

    def kill(self, name: str) -> None:
        """Kill a part with SIGKILL, and wait until it has taken effect."""
        pid = self._portal.pids().get(name)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            assert eventually(lambda: self._portal.pids().get(name) != pid), f"{name} lives"

    def freeze(self, name: str) -> None:
        """Freeze a part and its children with SIGSTOP, and wait until they have stopped."""
        pid = self._portal.pids().get(name)
        if pid is None:
            return
        # PostgreSQL's own children do the work; what it forks while it is stopped is nothing.
        pids = [pid]
        _send(pid, signal.SIGSTOP)
        assert eventually(lambda: _state(pid) in {"T", ""}), f"{name} goes on"
        for child in _children(pid):
            _send(child, signal.SIGSTOP)
            pids.append(child)
        self._frozen[name] = pids

    def thaw(self, *names: str) -> None:
        """Continue the named parts with SIGCONT, or all that are frozen."""
        for name in names or tuple(self._frozen):
            for pid in self._frozen.pop(name, []):
                _send(pid, signal.SIGCONT)

    def holds(self, *names: str) -> bool:
        """Whether one of these is frozen."""
        return any(name in self._frozen for name in names)

    def are_whole(self) -> bool:
        """Whether every part lives and none is frozen."""
        return not self._frozen and set(self._portal.pids()) == EVERY


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _state(pid: int) -> str:
    """Return the state letter of a process from /proc; "" if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
