"""Keeps the portal's own log files small: each has at most one older part beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

LARGEST_LOG_BYTES = 10 * 1024 * 1024


def bound_logs(directory: Path, largest: int = LARGEST_LOG_BYTES) -> None:
    """Move what a too large log holds to `<name>.1`; its writer, which appends, goes on."""
    for log in directory.glob("*.log"):
        if log.stat().st_size > largest:
            older = log.with_name(f"{log.name}.1")
            try:
                shutil.copy2(log, older)
            except OSError:
                # A full disk: then the newest lines are worth more than these.
                older.unlink(missing_ok=True)
            with log.open("r+b") as file:
                file.truncate(0)
