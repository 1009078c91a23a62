"""The charts of a job: the metrics of its program and of its hosts, with all ranks in each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from jobs.permissions import Actor
from jobs.readers.host_history import HistoryChoice, HostHistories, host_histories
from jobs.readers.log_moment import Moment, line_at
from jobs.readers.program_metrics import SeriesChoice, program_metrics
from jobs.web.base import figures
from jobs.web.base.access import signed_in
from jobs.web.jobs.chart_window import STEP, TIME, ChartView, query_of, whole_number
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
    moment = Moment(whole_number(request.GET, "at") or 0, attempt, number_in(request.GET, "rank"))
    found = line_at(actor, slug, job_id, moment)
    address = reverse("web:job_tab", args=[slug, job_id, "log"])
    if attempt is not None:
        address += f"?attempt={attempt}"
    return redirect(f"{address}#A{found.attempt}-L{found.line}" if found else address)


def charts_context(
    actor: Actor, slug: str, job_id: int, query: Mapping[str, str]
) -> dict[str, Any]:
    """Return the context of the tab; `query` may choose attempt, rank, axis, window and moment."""
    attempt, rank = number_in(query, "attempt"), number_in(query, "rank")
    view = ChartView.of(query, TIME, {"attempt": attempt, "rank": rank})
    choice = SeriesChoice(
        attempt,
        rank=rank,
        all_histories=True,
        points=_PROGRAM_POINTS,
        window=view.limits,
        by_step=view.by == STEP,
    )
    found = program_metrics(actor, slug, job_id, choice)
    hosts = HostHistories(0, [])
    if view.by == TIME:
        of_hosts = HistoryChoice(attempt, rank, view.limits, _HOST_POINTS)
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
        "are_moments": view.by == TIME,
        "marked": _moment(view.at) if view.by == TIME and view.at is not None else None,
        "links": view.links(window),
        "all_ranks_query": "" if rank is None else view.query(rank=None),
        "log_query": _log_query(view, window),
    }


def _charts(
    kinds: list[tuple[Kind, list[LineSeries]]], window: Window | None, view: ChartView
) -> list[LineChart]:
    if window is None:
        return []
    charts = (line_chart(kind, series, window, view.at, view.style) for kind, series in kinds)
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


def _log_query(view: ChartView, window: Window | None) -> str:
    """Return the address of the log at the marked moment, or at the begin of the window."""
    begin = math.floor(window.low * view.unit) if window else 0
    return query_of({**view.others, "at": begin if view.at is None else view.in_address(view.at)})


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(min(seconds, LATEST_TIME), timezone.utc)
