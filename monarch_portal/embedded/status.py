"""The processes that run on a home, and the memory they use."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from monarch_portal.embedded import memory, process_table, skypilot_server
from monarch_portal.embedded.home import Home
from monarch_portal.embedded.instance_lock import InstanceLock

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One part: its process, and the memory of that and, of a server, of all it has started.

    `note` says what a living process does not: whether SkyPilot's server answers.
    """

    name: str
    pid: int
    memory_mb: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class PortalStatus:
    """The portal on one home. Without a running one there are no processes and no memory."""

    running: bool
    url: str
    home: str
    memory_mb: float
    processes: list[ProcessStatus]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def portal_status(home: Home) -> PortalStatus:
    """Look at the processes of the portal on `home`."""
    running = InstanceLock(home.lock).holder() is not None
    records = process_table.living(home.process_table) if running else []
    processes = [
        ProcessStatus(
            record.name,
            record.pid,
            _memory_mb(record.name, record.pid),
            _note(home, record.name),
        )
        for record in records
    ]
    total = round(sum(process.memory_mb for process in processes), 1)
    return PortalStatus(running, home.url if running else "", str(home.path), total, processes)


def _note(home: Home, name: str) -> str:
    if name != "skypilot":
        return ""
    return "ready" if skypilot_server.answers(home.skypilot) else "does not answer yet"


def _memory_mb(name: str, pid: int) -> float:
    # Of the others' children only jobs could be found here, and those are not the portal's.
    pids = memory.with_descendants([pid]) if name in {"postgres", "skypilot"} else {pid}
    return round(sum(memory.pss_bytes(member) for member in pids) / MEGABYTE, 1)
