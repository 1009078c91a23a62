"""A description of the machine, for the line of each figure."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """Describe the machine: cores, processor, memory, system, Python."""
    return (
        f"{os.cpu_count()} x {_processor()}, {_memory_gb():.0f} GB, "
        f"{platform.system()} {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
