"""The memory of the portal's processes, shared pages counted once (PSS)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path


def pss_bytes(pid: int) -> int:
    """Return the proportional set size of one process; 0 if it ended or may not be read."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    line = next((line for line in rollup.splitlines() if line.startswith("Pss:")), "Pss: 0 kB")
    return int(line.split()[1]) * 1024


def with_descendants(pids: Iterable[int]) -> set[int]:
    """Return the processes and all their descendants."""
    children = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            children[parent].append(int(entry.name))
    found: set[int] = set()
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children[pid]
    return found


def _parent(entry: Path) -> int | None:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
