"""What every measurement shares: one JSON line a figure, the machine in words, medians."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path


def report(
    figure: str,
    value: float,
    unit: str,
    *,
    peer: str | None = None,
    peer_value: float | None = None,
    spread: tuple[float, float] | None = None,
) -> None:
    """Print one figure. `ratio` is ours over the peer's: below 1 is better for times and sizes.

    `spread`: the least and the most of the values whose median the figure is.
    """
    line = {
        "figure": figure,
        "value": round(value, 3),
        "unit": unit,
        "peer": peer,
        "peer_value": None if peer_value is None else round(peer_value, 3),
        "ratio": round(value / peer_value, 3) if peer_value else None,
        "machine": machine(),
    }
    if spread is not None:
        line["spread"] = [round(end, 3) for end in spread]
    print(json.dumps(line), flush=True)


def say(text: str) -> None:
    """A remark for the person who watches: to stderr, so that stdout stays JSON lines."""
    print(text, file=sys.stderr, flush=True)


def machine() -> str:
    """The machine in words: cores, processor, memory, system, Python."""
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


def median(values: Iterable[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    rank = max(1, math.ceil(len(ordered) * percent / 100))
    return ordered[rank - 1]


def wall_time_of_ticks(ticks: int, *, now: float, since_boot: float) -> float:
    """The wall-clock moment of a process start given in the kernel's ticks since boot."""
    return now - since_boot + ticks / os.sysconf("SC_CLK_TCK")
