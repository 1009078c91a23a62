"""Print figures: one JSON line each, with its peer and the speed of the machine."""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.machine import machine
from bench.machine_factor import Speeds, machine_fields, reference_speeds, speeds_now

# The lines of the run that goes on, if one does: the last item.
_runs: list[list[dict[str, Any]]] = []


@dataclass(frozen=True, slots=True)
class Peer:
    """A measurement of the same work without the portal, taken in the same run."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class NoPeer:
    """The reason why nothing can be measured beside a figure."""

    reason: str

    def __post_init__(self) -> None:
        if not self.reason:
            raise ValueError("a figure without a peer states why none is possible")


@contextmanager
def figures(probe: Callable[[], Speeds] = speeds_now) -> Iterator[None]:
    """Measure the machine before and after the block, and print the figures reported in it.

    They are printed at the end, also of a block that fails: only then is the factor known.
    """
    lines: list[dict[str, Any]] = []
    before = probe()
    _runs.append(lines)
    try:
        yield
    finally:
        _runs.pop()
        fields = machine_fields(before, probe(), reference_speeds())
        for line in lines:
            print(json.dumps(line | fields), flush=True)


def report(
    figure: str,
    value: float,
    unit: str,
    *,
    peer: Peer | NoPeer,
    spread: tuple[float, float] | None = None,
) -> None:
    """Report one figure. RuntimeError: outside a `figures()` block.

    `ratio` in its line is ours over the peer's: below 1 is better for times and sizes.
    `spread`: the least and the most of the values whose median the figure is.
    """
    if not _runs:
        raise RuntimeError(f"{figure} is reported outside a figures() block")
    line: dict[str, Any] = {"figure": figure, "value": _rounded(value), "unit": unit}
    if isinstance(peer, Peer):
        ratio = _rounded(value / peer.value) if peer.value else None
        line |= {"peer": peer.name, "peer_value": _rounded(peer.value), "ratio": ratio}
    else:
        line |= {"peer": None, "peer_value": None, "ratio": None, "no_peer": peer.reason}
    if spread is not None:
        line["spread"] = [_rounded(end) for end in spread]
    _runs[-1].append(line | {"machine": machine()})
    say(f"{figure}: {line['value']} {unit}, peer {line['peer_value']}")


def _rounded(value: float) -> float:
    """Keep three decimals, and four digits of what is below 1: a bare step may take 0.2 ms."""
    return round(value, 3) if abs(value) >= 1 else float(f"{value:.4g}")


def say(text: str) -> None:
    """Print a remark to stderr, so that stdout stays JSON lines."""
    print(text, file=sys.stderr, flush=True)


def median(values: Iterable[float]) -> float:
    """Return the middle value."""
    return statistics.median(values)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that `percent` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    rank = max(1, math.ceil(len(ordered) * percent / 100))
    return ordered[rank - 1]


def wall_time_of_ticks(ticks: int, *, now: float, since_boot: float) -> float:
    """Return the wall-clock time of a process start given in the kernel's ticks since boot."""
    return now - since_boot + ticks / os.sysconf("SC_CLK_TCK")
