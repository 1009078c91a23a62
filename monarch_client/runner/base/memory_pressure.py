"""Count the processes that the kernel killed for lack of memory."""

from __future__ import annotations

from pathlib import Path


def oom_kills(root: Path = Path("/")) -> int:
    """Return the number of such kills in this process's control group; 0 if it is unreadable."""
    for path in _event_files(root):
        try:
            text = path.read_text()
        except OSError:
            continue
        for line in text.splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill" and count.isdigit():
                return int(count)
    return 0


def _event_files(root: Path) -> list[Path]:
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    mount = root / "sys/fs/cgroup"
    files = []
    for line in groups:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            files += [mount / group.lstrip("/") / "memory.events", mount / "memory.events"]
        elif "memory" in controllers.split(","):
            files += [mount / "memory" / group.lstrip("/") / "memory.oom_control"]
    return files
