"""The page of all runs of one name: how duration, cost and a metric changed from run to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from jobs.errors import InvalidCursorError
from jobs.models import Project
from jobs.permissions import Actor, Verb, project_for
from jobs.readers.run_history import run_history
from jobs.web.base import figures
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page
from jobs.web.base.template_tags import usd
from jobs.web.jobs.line_charts import Kind, LineChart, LineSeries, line_chart, number, window_of
from jobs.web.jobs.table_query import changed
from monarch_client.wire.runs import HistoryRun, Run

PAGE_SIZE = 50
# Columns of metrics, the chosen one first.
MOST_COLUMNS = 3
_FEWEST_POINTS = 2

Value = Callable[[HistoryRun], float | None]


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the runs of the name in the address. An invalid cursor leads back to the first page."""
    project = project_for(actor, slug)
    if not _name(request):
        return redirect("web:jobs", slug=slug)
    try:
        context = _context(request, actor, project)
    except InvalidCursorError:
        return _first_page(request)
    return render_page(request, actor, "runs/history.html", context, project=project)


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the parts of the page that change."""
    try:
        context = _context(request, actor, project_for(actor, slug))
    except InvalidCursorError:
        return _first_page(request)
    return render(request, "runs/_history_live.html", context)


def value_of(run: Run, metric: str) -> float | None:
    """Return the last value of a metric; None if the run did not report a finite one."""
    return next((each.value for each in run.metrics if each.name == metric), None)


def _first_page(request: HttpRequest) -> HttpResponse:
    return redirect(f"{request.path}?{changed(request.GET, cursor=None)}")


def _name(request: HttpRequest) -> str:
    return request.GET.get("name", "").replace("\0", "")


def _context(request: HttpRequest, actor: Actor, project: Project) -> dict[str, Any]:
    query, name = request.GET, _name(request)
    found = run_history(actor, project, name, cursor=query.get("cursor"), limit=PAGE_SIZE)
    metrics = sorted({metric.name for run in found.runs for metric in run.metrics})
    metric = query.get("metric", "")
    chosen = metric if metric in metrics else (metrics or [""])[0]
    columns = [each for each in (chosen, *metrics) if each]
    columns = list(dict.fromkeys(columns))[:MOST_COLUMNS]
    return {
        "project": project,
        "nav": "jobs",
        "name": name,
        "runs": [
            (run, [(each, number(value_of(run, each))) for each in columns]) for run in found.runs
        ],
        "columns": columns,
        "unknown_metric": metric if metric and metric not in metrics else "",
        "has_costs": any(run.job.usd is not None for run in found.runs),
        "has_gpu_use": any(run.job.gpu_use is not None for run in found.runs),
        "has_code": any(run.code for run in found.runs),
        "choices": [(each, each == chosen, changed(query, metric=each)) for each in metrics],
        "charts": _charts(found.runs, chosen),
        "ends": _ends(found.runs),
        "may_submit": Verb.SUBMIT_JOB in found.verbs,
        "may_delete": Verb.DELETE_JOB in found.verbs,
        "live_query": changed(query, keep_cursor=True),
        "table": found,
        "next_query": changed(query, cursor=found.next),
        "previous_query": changed(query, cursor=found.previous),
    }


def _charts(runs: Sequence[HistoryRun], metric: str) -> list[LineChart]:
    """Return the charts of duration, cost and the metric over the runs of the page."""
    kinds: list[tuple[Kind, Value]] = [
        (_kind("Duration", _span), lambda run: run.duration_s if run.job.is_final else None),
        (_kind("Cost", _dollars), lambda run: float(run.job.usd) if run.job.usd else None),
    ]
    if metric:
        kinds.append((Kind(metric, number, of_lines="runs"), lambda run: value_of(run, metric)))
    charts = (_chart(kind, runs, value) for kind, value in kinds)
    return [chart for chart in charts if chart]


def _kind(title: str, say: Callable[[float | None], str]) -> Kind:
    return Kind(title, say, from_zero=True, of_lines="runs")


def _chart(kind: Kind, runs: Sequence[HistoryRun], value: Value) -> LineChart | None:
    """Return the chart of a value, the oldest run first; None if fewer than two runs have one."""
    known = [(place, each) for place, run in _places(runs) if (each := value(run)) is not None]
    if len(known) < _FEWEST_POINTS:
        return None
    xs, values = zip(*known, strict=True)
    window = window_of([LineSeries("", 0, [place for place, _ in _places(runs)], [])])
    if window is None:
        return None
    return line_chart(kind, [LineSeries("the last run", 0, xs, values)], window)


def _places(runs: Sequence[HistoryRun]) -> list[tuple[float, HistoryRun]]:
    return [(float(place), run) for place, run in enumerate(reversed(runs))]


def _ends(runs: Sequence[HistoryRun]) -> list[str]:
    """Return begin and end of the axis of the charts."""
    return [f"run {run.number or f'#{run.job.id}'}" for run in (runs[-1], runs[0])] if runs else []


def _span(seconds: float | None) -> str:
    return "–" if seconds is None else figures.span(seconds)


def _dollars(amount: float | None) -> str:
    return usd(None if amount is None else Decimal(str(amount)))
