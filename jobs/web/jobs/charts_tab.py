"""The charts of a job: the metrics of its program and of its hosts, with all ranks in each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from jobs.permissions import Actor
from jobs.readers.host_history import HistoryChoice, HostHistories, host_histories
from jobs.readers.log_moment import Moment, line_at
from jobs.readers.program_metrics import SeriesChoice, program_metrics
from jobs.web.base import figures
from jobs.web.base.access import signed_in
from jobs.web.jobs.hosts_tab import number_in
from jobs.web.jobs.line_charts import (
    Kind,
    LineChart,
    LineSeries,
    Window,
    line_chart,
    number,
    rank_series,
    window_of,
)
from monarch_client.wire.metrics import ProgramMetrics, Series

# All charts of one page together.
_PROGRAM_POINTS, _HOST_POINTS = 12_000, 1500
MOST_CHARTS = 24
TIME, STEP = "time", "step"
_MS = 1000
_NO_WINDOW: dict[str, None] = {"from": None, "to": None}
# Milliseconds until the year 3000, and steps, have fewer.
_MOST_DIGITS = 16
LATEST_TIME = 32_503_680_000


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Render the tab as it is now."""
    return render(request, "jobs/_charts.html", charts_context(actor, slug, job_id, request.GET))


@require_safe
@signed_in
def log_at(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Redirect to the line of the log at a moment: `at` in milliseconds since 1970."""
    attempt = number_in(request.GET, "attempt")
    moment = Moment(_whole_number(request.GET, "at") or 0, attempt, number_in(request.GET, "rank"))
    found = line_at(actor, slug, job_id, moment)
    address = reverse("web:job_tab", args=[slug, job_id, "log"])
    if attempt is not None:
        address += f"?attempt={attempt}"
    return redirect(f"{address}#A{found.attempt}-L{found.line}" if found else address)


def charts_context(
    actor: Actor, slug: str, job_id: int, query: Mapping[str, str]
) -> dict[str, Any]:
    """Return the context of the tab; `query` may choose attempt, rank, axis, window and moment."""
    view = _View.of(query)
    choice = SeriesChoice(
        view.attempt,
        rank=view.rank,
        all_histories=True,
        points=_PROGRAM_POINTS,
        window=view.limits,
        by_step=view.by == STEP,
    )
    found = program_metrics(actor, slug, job_id, choice)
    hosts = HostHistories(0, [])
    if view.by == TIME:
        of_hosts = HistoryChoice(view.attempt, view.rank, view.limits, _HOST_POINTS)
        hosts = host_histories(actor, slug, job_id, of_hosts)
    program_kinds, host_kinds = _program_kinds(found, view.by), _host_kinds(hosts.series)
    window = view.window or window_of(
        [each for _, series in (*program_kinds, *host_kinds) for each in series]
    )
    return {
        "slug": slug,
        "job_id": job_id,
        "is_final": found.is_final,
        "is_full": found.is_full,
        "view": view,
        "has_program_charts": bool(program_kinds),
        "program_charts": _charts(program_kinds[:MOST_CHARTS], window, view),
        "left_out": max(0, len(program_kinds) - MOST_CHARTS),
        "host_charts": _charts(host_kinds, window, view),
        "hosts_left_out": hosts.hosts - len(hosts.series),
        "window": window,
        "ends": _ends(window, view.by),
        "marked": None if view.at_ms is None else _moment(view.at_ms / _MS),
        "links": _links(view, window),
        "log_query": _log_query(view, window),
    }


@dataclass(frozen=True, slots=True)
class _View:
    """A view of the charts. `at_ms`: the marked moment, in milliseconds since 1970."""

    attempt: int | None
    rank: int | None
    by: str
    window: Window | None
    at_ms: int | None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> _View:
        """Return the view of an address. Http404 for what is no number."""
        by = STEP if query.get("by") == STEP else TIME
        low, high = _whole_number(query, "from"), _whole_number(query, "to")
        unit = _MS if by == TIME else 1
        is_window = low is not None and high is not None and low < high
        return cls(
            number_in(query, "attempt"),
            number_in(query, "rank"),
            by,
            Window((low or 0) / unit, (high or 0) / unit) if is_window else None,
            _whole_number(query, "at") if by == TIME else None,
        )

    @property
    def limits(self) -> tuple[float, float] | None:
        """The ends of the window."""
        return (self.window.low, self.window.high) if self.window else None

    def query(self, **changes: Any) -> str:
        """Return the address of a changed view; None leaves a part out."""
        known: dict[str, Any] = {"attempt": self.attempt, "rank": self.rank, "at": self.at_ms}
        if self.by == STEP:
            known["by"] = STEP
        if self.window:
            known |= _ends_of(self.window, self.by)
        return urlencode({k: v for k, v in (known | changes).items() if v is not None})

    @property
    def time_query(self) -> str:
        """The address of the same charts over time."""
        return self.query(**_NO_WINDOW, by=None) if self.by == STEP else self.query()

    @property
    def step_query(self) -> str:
        """The address of the same charts over steps."""
        return self.query(**_NO_WINDOW, by=STEP, at=None)

    @property
    def all_query(self) -> str:
        """The address of the whole axis."""
        return self.query(**_NO_WINDOW)

    @property
    def all_ranks_query(self) -> str:
        """The address of the charts of all ranks."""
        return self.query(rank=None)


def _charts(
    kinds: list[tuple[Kind, list[LineSeries]]], window: Window | None, view: _View
) -> list[LineChart]:
    if window is None:
        return []
    at = None if view.at_ms is None else view.at_ms / _MS
    charts = (line_chart(kind, series, window, at) for kind, series in kinds)
    return [chart for chart in charts if chart]


def _program_kinds(found: ProgramMetrics, by: str) -> list[tuple[Kind, list[LineSeries]]]:
    by_name: dict[str, list[LineSeries]] = defaultdict(list)
    for each in found.series:
        xs = [float(step) for step in each.steps] if by == STEP else each.t
        by_name[each.name].append(rank_series(each.rank, xs, each.values))
    return [(Kind(name, number), series) for name, series in by_name.items()]


def _host_kinds(series: list[Series]) -> list[tuple[Kind, list[LineSeries]]]:
    share, traffic = figures.percent, figures.rate
    kinds: list[tuple[Kind, list[LineSeries]]] = [
        (Kind("GPU use", share, 100, of_host=True), []),
        (Kind("GPU memory", share, 100, of_host=True), []),
        (Kind("Processor", share, 100, of_host=True), []),
        (Kind("Memory", share, 100, of_host=True), []),
        (Kind("Network in", traffic, of_host=True), []),
        (Kind("Network out", traffic, of_host=True), []),
    ]
    for each in series:
        columns = each.columns
        values = (
            _means(columns.gpu, len(columns.t)),
            _means(columns.gpu_memory, len(columns.t)),
            columns.cpu,
            columns.memory,
            columns.net_in,
            columns.net_out,
        )
        for (_, lines), line in zip(kinds, values, strict=True):
            lines.append(rank_series(each.rank, columns.t, line))
    return kinds


def _means(columns: list[list[float | None]], length: int) -> list[float | None]:
    """Return the mean of all GPUs of a host at each moment."""
    means: list[float | None] = []
    for place in range(length):
        known = [value for column in columns if (value := column[place]) is not None]
        means.append(sum(known) / len(known) if known else None)
    return means


def _ends(window: Window | None, by: str) -> list[Any]:
    """Return begin, middle and end of the axis: moments, or numbers of steps."""
    if window is None:
        return []
    values = (window.low, (window.low + window.high) / 2, window.high)
    return [_moment(each) if by == TIME else f"{each:,.0f}" for each in values]


def _ends_of(window: Window, by: str) -> dict[str, int]:
    unit = _MS if by == TIME else 1
    most = 10**_MOST_DIGITS - 1
    low, high = math.floor(window.low * unit), math.ceil(window.high * unit)
    return {"from": min(most, low), "to": min(most, high)}


def _links(view: _View, window: Window | None) -> list[tuple[str, str]]:
    """Return links that move the window, for readers without a pointer, by their labels."""
    if window is None:
        return []
    quarter = (window.high - window.low) / 4
    moved = {
        "Zoom in": Window(window.low + quarter, window.high - quarter),
        "Zoom out": Window(max(0.0, window.low - 2 * quarter), window.high + 2 * quarter),
        "Earlier": Window(max(0.0, window.low - 2 * quarter), window.high - 2 * quarter),
        "Later": Window(window.low + 2 * quarter, window.high + 2 * quarter),
    }
    if not view.window:
        moved = {"Zoom in": moved["Zoom in"]}
    links = [(label, view.query(**_ends_of(each, view.by))) for label, each in moved.items()]
    if view.window:
        links.append(("All", view.all_query))
    return links


def _log_query(view: _View, window: Window | None) -> str:
    """Return the address of the log at the marked moment, or at the begin of the window."""
    begin = math.floor(window.low * _MS) if window else 0
    known = {"attempt": view.attempt, "rank": view.rank, "at": view.at_ms or begin}
    return urlencode({name: value for name, value in known.items() if value is not None})


def _whole_number(query: Mapping[str, str], name: str) -> int | None:
    """Return a moment or step of the address; None without one. Http404: it is no number."""
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise Http404(f"{text[:20]} is no number of {name}.")
    return int(text)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(min(seconds, LATEST_TIME), timezone.utc)
