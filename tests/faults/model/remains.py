"""The remains of a portal's jobs on this machine: directories, leases, processes."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from jobs.backends.registry import LEASES_OF_ROOT

# The runner's program, the leases, and the names that are never launched again.
_THE_BACKENDS_OWN = {"claims", "runners", "slots", "ended"}


def remains(local: Path) -> list[str]:
    """List everything below, or running from, the directory of a local backend."""
    return [*_directories(local), *_leases(local), *_processes(local)]


def _directories(local: Path) -> list[str]:
    if not local.exists():
        return []
    left = (path for path in local.iterdir() if path.is_dir())
    return [f"directory {path.name}" for path in left if path.name not in _THE_BACKENDS_OWN]


def _leases(local: Path) -> list[str]:
    shared = LEASES_OF_ROOT if os.geteuid() == 0 else local / "slots"
    found = []
    for path in shared.glob("[0-9]*"):
        # Other installations share the directory, and take theirs away while we look.
        with suppress(OSError, ValueError, KeyError):
            holder = Path(json.loads(path.read_text())["cluster"])
            if holder.is_relative_to(local):
                found.append(f"lease {path.name} of {holder.name}")
    return found


def _processes(local: Path) -> list[str]:
    mark = os.fsencode(local)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes():
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append(f"process {entry.name}: {words}")
    return found
