"""The GPU use of a whole attempt over time: the mean and the lowest of its hosts. Pure.

Charts of one host are in `series`; this one is what lists show, so it has few points. A point is a
list: seconds since 1970, how many reports of hosts it covers, their mean, and the lowest of them,
both in per cent. Points that are merged keep the mean of their lowest values: a job is as fast as
its slowest host at each moment, not as the slowest one ever seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

MOST_POINTS = 60
# The reports of all hosts within such a time are one point.
POINT_S = 30.0
# GPUs that all are below so many per cent are idle.
IDLE_BELOW = 5.0
# Lists name idle GPUs after this time: evaluation, checkpoints and restarts are shorter.
IDLE_AFTER = timedelta(minutes=10)

_AT, _COUNT, _MEAN, _LOWEST = range(4)
Point = list[Any]


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One host's report of its GPUs, in per cent; None: a GPU that does not report its use."""

    at: datetime
    uses: Sequence[float | None]

    @property
    def mean(self) -> float | None:
        """The mean of the GPUs that report."""
        known = [use for use in self.uses if use is not None]
        return sum(known) / len(known) if known else None

    @property
    def is_busy(self) -> bool:
        """Whether a GPU works, or may work: unknown use is never taken for idleness."""
        return any(use is None or use >= IDLE_BELOW for use in self.uses)


@dataclass(frozen=True, slots=True)
class Use:
    """The use so far. `busy_at`: the last moment at which a GPU was not idle."""

    at: datetime
    busy_at: datetime
    points: list[Point] = field(default_factory=list)
    step_s: float = 0.0

    @property
    def mean(self) -> float | None:
        """The mean of all reports."""
        return _weighted(self.points, _MEAN)

    @property
    def lowest(self) -> float | None:
        """The lowest host's use, as a mean over time."""
        return _weighted(self.points, _LOWEST)

    @property
    def now(self) -> float | None:
        """The mean of the last point."""
        return self.points[-1][_MEAN] if self.points else None

    @property
    def begins_at(self) -> float | None:
        """The begin of the last point, in seconds since 1970."""
        return self.points[-1][_AT] if self.points else None

    @property
    def means(self) -> list[float]:
        """The mean of each point."""
        return [point[_MEAN] for point in self.points]

    def idle_since(self, now: datetime, late: timedelta) -> datetime | None:
        """Return since when all GPUs are idle; None while they work or do not report."""
        is_silent = now - self.at > late
        return None if is_silent or self.busy_at >= self.at else self.busy_at


def with_sample(before: Use | None, sample: GpuSample, late: timedelta) -> Use:
    """Return the use after a further sample.

    A sample that comes later than `late` after the last one says nothing of the time between.
    """
    if before is None:
        before = Use(sample.at, sample.at)
    has_gap = sample.at - before.at > late
    busy_at = before.busy_at
    if sample.is_busy or has_gap:
        busy_at = max(busy_at, sample.at)
    points, step_s = before.points, before.step_s
    if (mean := sample.mean) is not None:
        points, step_s = _with_mean(points, step_s, sample.at.timestamp(), mean)
    return Use(max(before.at, sample.at), busy_at, points, step_s)


def columns_of(points: Sequence[Point]) -> dict[str, list[Any]]:
    """Return the points column by column: `t`, `mean` and `lowest`."""
    places = {"t": _AT, "mean": _MEAN, "lowest": _LOWEST}
    return {name: [point[place] for point in points] for name, place in places.items()}


def _with_mean(
    points: list[Point], step_s: float, at: float, mean: float
) -> tuple[list[Point], float]:
    """Return the points with one more value, in the open point or after it."""
    begin = at - at % POINT_S
    if points and begin <= points[-1][_AT]:
        last = points[-1]
        count = last[_COUNT] + 1
        together = last[_MEAN] + (mean - last[_MEAN]) / count
        changed = [last[_AT], count, round(together, 2), round(min(last[_LOWEST], mean), 1)]
        return [*points[:-1], changed], step_s
    points = _thinned(points, step_s)
    while len(points) >= MOST_POINTS:
        step_s = max(2 * step_s, 2 * POINT_S)
        points = _thinned(points, step_s)
    return [*points, [begin, 1, round(mean, 2), round(mean, 1)]], step_s


def _thinned(points: list[Point], step_s: float) -> list[Point]:
    if not step_s:
        return points
    groups = groupby(points, key=lambda point: point[_AT] // step_s)
    return [_merged(list(group)) for _, group in groups]


def _merged(points: list[Point]) -> Point:
    if len(points) == 1:
        return points[0]
    return [
        points[0][_AT],
        sum(point[_COUNT] for point in points),
        _weighted(points, _MEAN),
        _weighted(points, _LOWEST),
    ]


def _weighted(points: Sequence[Point], place: int) -> float | None:
    counts: int = sum(point[_COUNT] for point in points)
    if not counts:
        return None
    total: float = sum(point[place] * point[_COUNT] for point in points)
    return round(total / counts, 1)
