"""The generations in which processes of this node have their working directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def folders_in_use(folder: Path) -> set[str]:
    """Return the names of the folders directly below `folder` in which a process works.

    Processes of other users are not visible, and none of them belongs to the job.
    """
    prefix = str(folder.resolve()) + os.sep
    used = set()
    for process in _processes():
        try:
            path = os.readlink(f"/proc/{process}/cwd")
        except OSError:
            continue
        if path.startswith(prefix):
            used.add(path[len(prefix) :].partition(os.sep)[0])
    return used


def _processes() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []
