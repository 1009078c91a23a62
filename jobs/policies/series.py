"""Histories of bounded length: a long one is kept in fewer, wider points. Pure.

A point is a list: seconds since 1970, how many samples it is the mean of, the values of COLUMNS,
and two lists with a value for each GPU: its use and the use of its memory. A value may be None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import groupby, zip_longest
from typing import Any

MOST_POINTS = 720
# Points that are kept apart from the history until there are so many.
MOST_RECENT = 30
# A host that says nothing for so long, or for so many of its samples, is not just late.
_LATE_S = 150
_LATE_SAMPLES = 3
# Of `latest` and of the series alike: per cent, and bytes a second.
COLUMNS = ("cpu", "memory", "disk", "net_in", "net_out")
_AT, _COUNT, _VALUES = 0, 1, 2
_GPU_USE = _VALUES + len(COLUMNS)
_GPU_MEMORY = _GPU_USE + 1

Point = list[Any]


def late_after(pace_s: float) -> timedelta:
    """Return after how long a host that reports every `pace_s` seconds is silent."""
    return timedelta(seconds=max(_LATE_S, _LATE_SAMPLES * pace_s))


def percent(used: float | None, total: float | None) -> float | None:
    """Return the used part, from 0 to 100."""
    if used is None or not total:
        return None
    return round(min(100.0, 100.0 * used / total), 1)


def point_of(sample: Mapping[str, Any], at: float) -> Point:
    """Convert a sample to one point."""
    gpus = sample["gpus"]
    values = {
        **sample,
        "memory": percent(sample["memory_used"], sample["memory_total"]),
        "disk": percent(sample["disk_used"], sample["disk_total"]),
    }
    return [
        round(at, 1),
        1,
        *(values[column] for column in COLUMNS),
        [gpu["utilization"] for gpu in gpus],
        [percent(gpu["memory_used"], gpu["memory_total"]) for gpu in gpus],
    ]


def folded(
    history: Sequence[Point], recent: Sequence[Point], step_s: float
) -> tuple[list[Point], float]:
    """Merge both into one history, and return it with the distance of its points."""
    return bounded(_thinned([*history, *recent], step_s), step_s, MOST_POINTS)


def bounded(points: list[Point], step_s: float, most: int) -> tuple[list[Point], float]:
    """Merge `points` until they are at most `most`, and return them with their distance."""
    while len(points) > most:
        span_s = points[-1][_AT] - points[0][_AT]
        step_s = max(2 * step_s, 2 * span_s / most, 1.0)
        points = _thinned(points, step_s)
    return points, step_s


def within(points: Sequence[Point], low: float, high: float) -> list[Point]:
    """Return the points of a window of time, both ends included."""
    return [point for point in points if low <= point[_AT] <= high]


def columns_of(points: Sequence[Point]) -> dict[str, list[Any]]:
    """Return the points column by column; `t`, and of the GPUs `gpu` and `gpu_memory` by index."""
    gpus = max((len(point[_GPU_USE]) for point in points), default=0)
    return {
        "t": [point[_AT] for point in points],
        **{name: [point[place] for point in points] for place, name in enumerate(COLUMNS, _VALUES)},
        "gpu": [[_at(point[_GPU_USE], gpu) for point in points] for gpu in range(gpus)],
        "gpu_memory": [[_at(point[_GPU_MEMORY], gpu) for point in points] for gpu in range(gpus)],
    }


def _thinned(points: list[Point], step_s: float) -> list[Point]:
    if not step_s:
        return points
    groups = groupby(points, key=lambda point: int(point[_AT] // step_s))
    return [_mean(list(group)) for _, group in groups]


def _mean(points: list[Point]) -> Point:
    if len(points) == 1:
        return points[0]
    counts = [point[_COUNT] for point in points]
    return [
        points[0][_AT],
        sum(counts),
        *(
            _weighted([point[place] for point in points], counts)
            for place in range(_VALUES, _GPU_USE)
        ),
        *(
            [
                _weighted(list(values), counts)
                for values in zip_longest(*(point[place] for point in points))
            ]
            for place in (_GPU_USE, _GPU_MEMORY)
        ),
    ]


def _weighted(values: list[float | None], counts: list[int]) -> float | None:
    known = [
        (value, count) for value, count in zip(values, counts, strict=True) if value is not None
    ]
    if not known:
        return None
    return round(sum(v * count for v, count in known) / sum(count for _, count in known), 1)


def _at(values: Sequence[Any], place: int) -> Any:
    return values[place] if place < len(values) else None
