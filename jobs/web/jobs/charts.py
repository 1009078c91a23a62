"""A host's history as charts: the geometry of small SVGs, and a summary in text. Pure.

A template draws them; nothing here knows HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from jobs.web.base import figures
from monarch_client.wire.metrics import GpuUseSeries, HostGpu, Series

WIDTH, HEIGHT = 340, 132
LEFT, RIGHT, TOP, BOTTOM = 54, 334, 8, 112
MOST_BANDS = 48
COLORS = 8
_LEAST_GAP_S = 60.0

Words = Callable[[float | None], str]
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """A chart's line. `segments` are points of polylines: it breaks where a report is missing."""

    name: str
    color: int
    now: str
    summary: str
    segments: list[str]


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark at an axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Band:
    """An upright part of the chart that shows its values when pointed at."""

    x: float
    width: float
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart."""

    title: str
    lines: list[Line]
    rows: list[Tick]
    columns: list[Tick]
    bands: list[Band]

    @property
    def summary(self) -> str:
        """Return what the chart shows, for people who cannot see it."""
        return f"{self.title}. " + " ".join(f"{line.summary}." for line in self.lines)


@dataclass(frozen=True, slots=True)
class _Kind:
    """The kind of a chart: its title, the format of its numbers, and the top of its axis."""

    title: str
    say: Words
    top: float | None = None  # None: a round number above the highest


def charts_of(series: Series, gpus: Sequence[HostGpu]) -> list[Chart]:
    """Return the charts of a host with its `gpus` that have something to show."""
    columns, names = series.columns, [f"GPU {gpu.index}" for gpu in gpus]
    share, traffic = figures.percent, figures.rate
    wanted: list[tuple[_Kind, list[tuple[str, Values]]]] = [
        (_Kind("Processor", share, 100), [("CPU", columns.cpu)]),
        (_Kind("Memory", share, 100), [("Memory", columns.memory)]),
        (_Kind("GPU use", share, 100), _named(names, columns.gpu)),
        (_Kind("GPU memory", share, 100), _named(names, columns.gpu_memory)),
        (_Kind("Network", traffic), [("In", columns.net_in), ("Out", columns.net_out)]),
        (_Kind("Disk", share, 100), [("Disk", columns.disk)]),
    ]
    scale = _Scale(columns.t, series.step_s)
    known = [(kind, [each for each in lines if _known(each[1])]) for kind, lines in wanted]
    return [_chart(kind, lines, scale) for kind, lines in known if lines]


def use_chart(series: GpuUseSeries) -> Chart:
    """Return the chart of the GPU use of all hosts: their mean, and the lowest of them."""
    lines: list[tuple[str, Values]] = [("Mean", series.mean), ("Lowest host", series.lowest)]
    return _chart(_Kind("GPU use", figures.percent, 100), lines, _Scale(series.t, 0.0))


def _named(names: list[str], columns: list[list[Any]]) -> list[tuple[str, Values]]:
    labels = [*names, *(f"GPU {place}" for place in range(len(names), len(columns)))]
    return list(zip(labels, columns, strict=False))


def _known(values: Values) -> list[float]:
    return [value for value in values if value is not None]


class _Scale:
    """A scale of moments, from the first point to the last."""

    def __init__(self, times: list[float], step_s: float) -> None:
        self.times = times
        self.span_s = times[-1] - times[0] if times else 0.0
        steps = [after - before for before, after in pairwise(times)]
        self.gap_s = max(_LEAST_GAP_S, 4 * step_s, 4 * median(steps) if steps else 0.0)

    def x(self, place: int) -> float:
        since = self.times[place] - self.times[0]
        return round(LEFT + (RIGHT - LEFT) * (since / self.span_s if self.span_s else 1.0), 1)

    def ticks(self) -> list[Tick]:
        if not self.span_s:
            return [Tick(RIGHT, "0 s")]
        middle = (LEFT + RIGHT) / 2
        halves = (self.span_s / 2, self.span_s)
        return [
            Tick(LEFT, "0"),
            *(Tick(at, figures.span(s)) for at, s in zip((middle, RIGHT), halves, strict=True)),
        ]

    def since(self, place: int) -> str:
        return figures.span(self.times[place] - self.times[0])


def _chart(kind: _Kind, lines: list[tuple[str, Values]], scale: _Scale) -> Chart:
    highest = max(value for _, values in lines for value in _known(values))
    top = kind.top or figures.round_top(max(1.0, highest))
    drawn = [
        Line(
            name=name,
            color=number % COLORS,
            now=kind.say(_known(values)[-1]),
            summary=_summary(name, _known(values), kind.say),
            segments=_segments(values, scale, top),
        )
        for number, (name, values) in enumerate(lines)
    ]
    rows = [Tick(_y(top * part, top), kind.say(top * part)) for part in (0, 0.5, 1)]
    return Chart(kind.title, drawn, rows, scale.ticks(), _bands(kind, lines, scale))


def _summary(name: str, values: list[float], say: Words) -> str:
    mean = sum(values) / len(values)
    return f"{name}: last {say(values[-1])}, mean {say(mean)}, highest {say(max(values))}"


def _y(value: float, top: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * min(1.0, value / top), 1)


def _segments(values: Values, scale: _Scale, top: float) -> list[str]:
    segments: list[list[str]] = []
    last: int | None = None
    for place, value in enumerate(values):
        if value is None:
            continue
        is_apart = last is None or scale.times[place] - scale.times[last] > scale.gap_s
        if is_apart:
            segments.append([])
        segments[-1].append(f"{scale.x(place):g},{_y(value, top):g}")
        last = place
    # A lonely point is drawn as a dot: a line from it to itself.
    return [" ".join(points if len(points) > 1 else points * 2) for points in segments]


def _bands(kind: _Kind, lines: list[tuple[str, Values]], scale: _Scale) -> list[Band]:
    count = len(scale.times)
    samples = range(0, count, -(-count // MOST_BANDS))
    edges = [LEFT, *(scale.x(sample) for sample in samples[1:]), RIGHT]
    bands = []
    for number, sample in enumerate(samples):
        present = [(name, values[sample]) for name, values in lines if values[sample] is not None]
        words = ", ".join(
            kind.say(value) if len(lines) == 1 else f"{name} {kind.say(value)}"
            for name, value in present
        )
        width = round(edges[number + 1] - edges[number], 1)
        bands.append(Band(edges[number], width, f"{scale.since(sample)}: {words or 'not known'}"))
    return bands
