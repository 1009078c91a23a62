"""Charts of one value on all ranks or runs: the geometry of SVGs, and a summary in text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from jobs.web.jobs.charts import BOTTOM, COLORS, LEFT, RIGHT, TOP, Tick

# More lines than these have no names of their own.
MOST_NAMED = 8
_LEAST_GAP_S = 60.0
_MARGIN = 0.05

Words = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class LineSeries:
    """The values of one rank or run, in the order of `xs`. `number` chooses its color."""

    name: str
    number: int
    xs: Sequence[float]
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the horizontal axis that all charts of a page show."""

    low: float
    high: float

    def x(self, value: float) -> float:
        """Return the position of a value in the picture."""
        span = self.high - self.low
        part = (value - self.low) / span if span else 1.0
        return round(LEFT + (RIGHT - LEFT) * part, 1)


@dataclass(frozen=True, slots=True)
class ChartLine:
    """The line of one series. `marked`: its value at the marked moment."""

    name: str
    color: int
    segments: list[str]
    now: str
    marked: str


@dataclass(frozen=True, slots=True)
class LineChart:
    """One chart. `mark`: the position of the marked moment; `of_lines`: the word for its lines."""

    title: str
    of_lines: str
    lines: list[ChartLine]
    rows: list[Tick]
    window: Window
    mark: float | None
    summary: str

    @property
    def named(self) -> list[ChartLine]:
        """Return the lines to name beside the chart; of many, none."""
        return self.lines if len(self.lines) <= MOST_NAMED else []


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of a chart: its title, the format of its numbers, and the top of its axis.

    `top` None: what the values need. `of_host`: its axis begins at 0, and a long pause ends a line.
    `from_zero`: its axis begins at 0. `of_lines`: the word for its lines.
    """

    title: str
    say: Words
    top: float | None = None
    of_host: bool = False
    from_zero: bool = False
    of_lines: str = "ranks"


def rank_series(rank: int, xs: Sequence[float], values: Sequence[float | None]) -> LineSeries:
    """Return the values of one rank."""
    return LineSeries(f"rank {rank}", rank, xs, values)


def window_of(series: Sequence[LineSeries]) -> Window | None:
    """Return the window that shows all series; None without any value."""
    ends = [x for each in series if each.xs for x in (min(each.xs), max(each.xs))]
    return Window(min(ends), max(ends)) if ends else None


def line_chart(
    kind: Kind, series: Sequence[LineSeries], window: Window, at: float | None = None
) -> LineChart | None:
    """Return the chart of a value; None if no series has one."""
    known = [each for each in series if any(value is not None for value in each.values)]
    if not known:
        return None
    values = [value for each in known for value in each.values if value is not None]
    low, high = (0.0, kind.top) if kind.top else _axis(min(values), max(values))
    if kind.of_host or kind.from_zero:
        low = 0.0
    is_marked = at is not None and window.low <= at <= window.high
    lines = [
        ChartLine(
            name=each.name,
            color=each.number % COLORS,
            segments=_segments(each, window, low, high, breaks=kind.of_host),
            now=kind.say(_last(each.values)),
            marked=kind.say(_at(each, at)) if at is not None and is_marked else "",
        )
        for each in known
    ]
    rows = [Tick(_y(value, low, high), kind.say(value)) for value in (low, (low + high) / 2, high)]
    mark = window.x(at) if at is not None and is_marked else None
    summary = _summary(kind, known, values)
    return LineChart(kind.title, kind.of_lines, lines, rows, window, mark, summary)


def number(value: float | None) -> str:
    """Format a value that a program reports."""
    return "–" if value is None else f"{value:.4g}"


def _axis(lowest: float, highest: float) -> tuple[float, float]:
    margin = (highest - lowest) * _MARGIN or abs(highest) * _MARGIN or 1.0
    low = lowest - margin
    # What is never negative has no axis below 0.
    return (max(0.0, low) if lowest >= 0 else low), highest + margin


def _y(value: float, low: float, high: float) -> float:
    part = min(1.0, max(0.0, (value - low) / (high - low)))
    return round(BOTTOM - (BOTTOM - TOP) * part, 1)


def _segments(
    series: LineSeries, window: Window, low: float, high: float, *, breaks: bool
) -> list[str]:
    steps = [after - before for before, after in pairwise(series.xs)]
    gap = max(_LEAST_GAP_S, 4 * median(steps)) if breaks and steps else None
    segments: list[list[str]] = []
    last: float | None = None
    for x, value in zip(series.xs, series.values, strict=True):
        if value is None:
            last = None
            continue
        if last is None or (gap is not None and x - last > gap):
            segments.append([])
        segments[-1].append(f"{window.x(x):g},{_y(value, low, high):g}")
        last = x
    # A lonely point is drawn as a dot: a line from it to itself.
    return [" ".join(points if len(points) > 1 else points * 2) for points in segments]


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _at(series: LineSeries, at: float) -> float | None:
    """Return the last value at or before a moment."""
    before = [
        value
        for x, value in zip(series.xs, series.values, strict=True)
        if x <= at and value is not None
    ]
    return before[-1] if before else None


def _summary(kind: Kind, series: Sequence[LineSeries], values: Sequence[float]) -> str:
    of_what = series[0].name if len(series) == 1 else f"{len(series)} {kind.of_lines}"
    range_shown = f"lowest {kind.say(min(values))}, highest {kind.say(max(values))}"
    last = ""
    if len(series) <= MOST_NAMED:
        lasts = (f"{each.name} {kind.say(_last(each.values))}" for each in series)
        last = f"; last: {', '.join(lasts)}"
    return f"{kind.title} of {of_what}: {range_shown}{last}."
