"""Charts of one value on all ranks or runs: the geometry of SVGs, and a summary in text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from jobs.web.jobs.chart_scale import Scale, scale_of, smoothed
from jobs.web.jobs.charts import COLORS, LEFT, RIGHT, Tick

# More lines than these have no names of their own.
MOST_NAMED = 8
_LEAST_GAP_S = 60.0
# Smaller numbers of an axis are written with a power of ten.
_LEAST_PLAIN = 0.001

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
class Style:
    """The style of lines. `smoothing`: the weight of earlier values, from 0 to below 1."""

    smoothing: float = 0.0
    is_log: bool = False


@dataclass(frozen=True, slots=True)
class ChartLine:
    """The line of one series. `marked`: its value at the marked moment.

    `faint`: its values before they were smoothed.
    """

    name: str
    color: int
    segments: list[str]
    faint: list[str]
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
    is_log: bool

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
    of_lines: str = "nodes"


def rank_series(rank: int, xs: Sequence[float], values: Sequence[float | None]) -> LineSeries:
    """Return the values of one rank."""
    return LineSeries(f"node {rank}", rank, xs, values)


def window_of(series: Sequence[LineSeries]) -> Window | None:
    """Return the window that shows all series; None without any value."""
    ends = [x for each in series if each.xs for x in (min(each.xs), max(each.xs))]
    return Window(min(ends), max(ends)) if ends else None


def within(series: LineSeries, window: Window) -> LineSeries:
    """Return the part of a series that a window shows."""
    pairs = zip(series.xs, series.values, strict=True)
    shown = [(x, value) for x, value in pairs if window.low <= x <= window.high]
    return replace(series, xs=[x for x, _ in shown], values=[value for _, value in shown])


def line_chart(
    kind: Kind,
    series: Sequence[LineSeries],
    window: Window,
    at: float | None = None,
    style: Style = Style(),
) -> LineChart | None:
    """Return the chart of a value; None if no series has one."""
    known = [each for each in series if any(value is not None for value in each.values)]
    if not known:
        return None
    values = [value for each in known for value in each.values if value is not None]
    scale = _scale(kind, values, style)
    mark = at if at is not None and window.low <= at <= window.high else None
    return LineChart(
        title=kind.title,
        of_lines=kind.of_lines,
        lines=[_line(kind, each, _Frame(window, scale, mark), style) for each in known],
        rows=scale.rows(axis_number if kind.say is number else kind.say),
        window=window,
        mark=None if mark is None else window.x(mark),
        summary=_summary(kind, known, values),
        is_log=scale.is_log,
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    """The axes of a chart and the marked moment, if it is in the window."""

    window: Window
    scale: Scale
    mark: float | None


def _scale(kind: Kind, values: Sequence[float], style: Style) -> Scale:
    """Return the scale of a chart's values.

    *Log scale* is ignored where the axis begins at 0, which has no logarithm: for a kind with a
    fixed top, of hosts or `from_zero`. It is also ignored if a value is not above 0 (`scale_of`).
    """
    if kind.top:
        return Scale(0.0, kind.top)
    from_zero = kind.of_host or kind.from_zero
    scale = scale_of(values, is_log=style.is_log and not from_zero)
    return Scale(0.0, scale.high) if from_zero else scale


def _line(kind: Kind, series: LineSeries, frame: _Frame, style: Style) -> ChartLine:
    raw = _segments(series, series.values, frame, breaks=kind.of_host)
    smooth = raw
    if style.smoothing:
        values = smoothed(series.values, style.smoothing)
        smooth = _segments(series, values, frame, breaks=kind.of_host)
    return ChartLine(
        name=series.name,
        color=series.number % COLORS,
        segments=smooth,
        faint=raw if style.smoothing else [],
        now=kind.say(_last(series.values)),
        marked="" if frame.mark is None else kind.say(_at(series, frame.mark)),
    )


def number(value: float | None) -> str:
    """Format a value that a program reports."""
    return "–" if value is None else f"{value:.4g}"


def axis_number(value: float | None) -> str:
    """Format a value of an axis in at most eight characters, so that it fits beside its chart."""
    if not value or abs(value) >= _LEAST_PLAIN:
        return number(None if value is None else float(f"{value:.3g}"))
    digits, _, power = f"{value:.2e}".partition("e")
    return f"{float(digits):g}e{int(power)}"


def _segments(
    series: LineSeries, values: Sequence[float | None], frame: _Frame, *, breaks: bool
) -> list[str]:
    steps = [after - before for before, after in pairwise(series.xs)]
    gap = max(_LEAST_GAP_S, 4 * median(steps)) if breaks and steps else None
    segments: list[list[str]] = []
    last: float | None = None
    for x, value in zip(series.xs, values, strict=True):
        if value is None:
            last = None
            continue
        if last is None or (gap is not None and x - last > gap):
            segments.append([])
        segments[-1].append(f"{frame.window.x(x):g},{frame.scale.y(value):g}")
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
