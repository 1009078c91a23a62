"""Metrics that a program reports in its output: parsed from lines, kept in few points. Pure.

A line such as `step=12 loss=0.25` is a report: of a step, and of the value of each other name.
`mportal_runtime.log` writes such lines. A series is a history of one name on one rank, whose points
are lists: seconds since 1970, step, how many reports the point is the mean of, and that mean; None
for a value that is not finite, or too large for sums.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_SERIES = 256
MOST_NAMES_OF_LINE = 32
MOST_POINTS = 512
# Points that are kept apart from the history until there are so many.
MOST_RECENT = 32
_MOST_CHARS = 2000
_MOST_STEP = 2**53
_MOST_VALUE = 1e300
_MARK = "step="
_STEP = "step"
_PAIR = re.compile(
    r"(?<![\w./=-])([a-z_][\w./-]{0,63})=([-+]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})(?:e[-+]?\d{1,4})?"
    r"|[-+]?(?:nan|inf(?:inity)?))(?!\w|\.\d)",
    re.ASCII | re.IGNORECASE,
)
_AT, _STEP_OF_POINT, _COUNT, _VALUE = range(4)

Point = list[Any]


@dataclass(frozen=True, slots=True)
class Report:
    """The values of one line by name, of one step of one rank."""

    rank: int
    at: float
    step: int
    values: dict[str, float | None]


@dataclass(slots=True)
class History:
    """A series. `stride`: the reports of a point of `old`; `recent` has a point for each report."""

    at: float
    step: int
    value: float | None
    lowest: float | None = None
    highest: float | None = None
    stride: int = 1
    old: list[Point] = field(default_factory=list)
    recent: list[Point] = field(default_factory=list)

    def add(self, at: float, step: int, value: float | None) -> None:
        """Add a report."""
        self.at, self.step, self.value = max(self.at, at), step, value
        if value is not None:
            self.lowest = value if self.lowest is None else min(self.lowest, value)
            self.highest = value if self.highest is None else max(self.highest, value)
        self.recent.append([round(at, 3), step, 1, value])

    @property
    def is_full(self) -> bool:
        """Whether the recent points are to become a part of the history."""
        return len(self.recent) >= MOST_RECENT

    def fold(self) -> None:
        """Move the recent points to the history, whose points all cover as many reports."""
        for point in self.recent:
            if self.old and self.old[-1][_COUNT] < self.stride:
                self.old[-1] = _merged([self.old[-1], point])
            else:
                self.old.append(point)
            if len(self.old) > MOST_POINTS:
                self.stride *= 2
                self.old = _pairs(self.old)
        self.recent = []


def report_of(rank: int, at: float, text: str) -> Report | None:
    """Return what a line reports; None if it is no report. Called for every line of a log."""
    if _MARK not in text or len(text) > _MOST_CHARS:
        return None
    values: dict[str, float | None] = {}
    step = None
    for name, written in _PAIR.findall(text):
        value = float(written)
        if name == _STEP:
            step = int(value) if 0 <= value <= _MOST_STEP and value.is_integer() else None
        elif len(values) < MOST_NAMES_OF_LINE:
            values[name] = finite(value)
    return Report(rank, at, step, values) if step is not None and values else None


def finite(value: float | None) -> float | None:
    """Return a value as a float; None for one that sums and charts cannot hold.

    PostgreSQL returns a large number of a JSON column as an int of up to 309 digits.
    """
    return float(value) if value is not None and abs(value) <= _MOST_VALUE else None


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Return at most `most` points, each the mean of as many neighbors."""
    size = -(-len(points) // max(1, most))
    if size <= 1:
        return list(points)
    return [_merged(points[begin : begin + size]) for begin in range(0, len(points), size)]


def joined(histories: Sequence[Sequence[Point]]) -> list[Point]:
    """Return the histories of successive attempts as one.

    A later attempt replaces the steps that it repeats.
    """
    points: list[Point] = []
    for history in histories:
        if history:
            begin = history[0][_STEP_OF_POINT]
            points = [point for point in points if point[_STEP_OF_POINT] < begin]
            points += history
    return points


def within(points: Sequence[Point], low: float, high: float, *, by_step: bool) -> list[Point]:
    """Return the points of a window of steps, or of time; both ends included."""
    place = _STEP_OF_POINT if by_step else _AT
    return [point for point in points if low <= point[place] <= high]


def columns_of(points: Sequence[Point]) -> dict[str, list[Any]]:
    """Return the points column by column: `t`, `steps` and `values`."""
    columns = {"t": _AT, "steps": _STEP_OF_POINT, "values": _VALUE}
    found = {name: [point[place] for point in points] for name, place in columns.items()}
    return {**found, "values": [finite(value) for value in found["values"]]}


def _pairs(points: Sequence[Point]) -> list[Point]:
    return [_merged(points[begin : begin + 2]) for begin in range(0, len(points), 2)]


def _merged(points: Sequence[Point]) -> Point:
    values = [(finite(point[_VALUE]), point[_COUNT]) for point in points]
    known = [(value, count) for value, count in values if value is not None]
    counts = sum(count for _, count in known)
    # A sum of large values may be infinite, which JSON cannot hold.
    mean = finite(sum(value * count for value, count in known) / counts) if counts else None
    first = points[0]
    return [first[_AT], first[_STEP_OF_POINT], sum(point[_COUNT] for point in points), mean]
