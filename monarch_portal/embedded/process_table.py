"""Record the processes of a portal on disk, so that its next start finds leftovers of a kill.

A process is known by its number, its start time and the boot of the machine; a number alone may
have passed to a stranger.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from jobs.backends.local.processes import boot_id
from monarch_portal.embedded.account import ourselves
from monarch_portal.embedded.private_files import write_owned

ORPHAN_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process: what it is for, its number, and when it started (in clock ticks since boot)."""

    name: str
    pid: int
    started: int
    boot: str = ""  # earlier versions wrote none

    @classmethod
    def of(cls, name: str, pid: int) -> ProcessRecord:
        """Return the record of a process that runs now."""
        return cls(name, pid, start_time(pid) or 0, boot_id())

    @property
    def lives(self) -> bool:
        """Whether this very process still runs."""
        return self.boot in {"", boot_id()} and start_time(self.pid) == self.started


def start_time(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot; None if ended or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the name in brackets, which may hold anything.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def write_table(path: Path, pids: Mapping[str, int]) -> None:
    """Write down the processes by name, for this user alone."""
    records = [asdict(ProcessRecord.of(name, pid)) for name, pid in pids.items()]
    write_owned(path, json.dumps(records), ourselves())


def living(path: Path) -> list[ProcessRecord]:
    """Return the recorded processes that still run."""
    try:
        records = [ProcessRecord(**record) for record in json.loads(path.read_text())]
    except (FileNotFoundError, ValueError, TypeError):
        return []
    return [record for record in records if record.lives]


def end_orphans(path: Path) -> list[ProcessRecord]:
    """End what an earlier portal left running, and return it. Only for the holder of the lock."""
    orphans = living(path)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        for orphan in orphans:
            if orphan.lives:
                os.kill(orphan.pid, number)
        if _gone(orphans):
            break
    path.unlink(missing_ok=True)
    return orphans


def _gone(records: Iterable[ProcessRecord]) -> bool:
    deadline = time.monotonic() + ORPHAN_PATIENCE_S / 2
    while time.monotonic() < deadline:
        if not any(record.lives for record in records):
            return True
        time.sleep(0.05)
    return False
