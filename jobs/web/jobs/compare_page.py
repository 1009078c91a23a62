"""The page that compares runs: facts, specifications, and metrics in common charts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from jobs.models import Project
from jobs.permissions import Actor, project_for
from jobs.readers.comparison import SeriesWindow, begin_of, comparison
from jobs.web.base import figures
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page
from jobs.web.jobs.chart_window import STEP, TIME, ChartView
from jobs.web.jobs.charts_tab import MOST_CHARTS
from jobs.web.jobs.line_charts import Kind, LineSeries, line_chart, number, window_of, within
from monarch_client.wire.runs import MOST_COMPARED, Comparison, Run

# All charts together.
_POINTS = 12_000
_NUMBER = re.compile(r"#?([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class LegendRun:
    """A run in the legend of all charts. `query`: the address that shows it, or hides it."""

    job: int
    name: str
    is_hidden: bool
    query: str


@dataclass(frozen=True, slots=True)
class MetricCell:
    """The values of a metric in a run, as text."""

    job: int
    last: str
    lowest: str
    highest: str


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Compare the jobs in the address; a selection that was posted leads to its address."""
    project = project_for(actor, slug)
    if request.method == "POST":
        return _to_address(request, slug, _numbers(request.POST.getlist("job")))
    if added := _numbers([request.GET.get("add", "")]):
        return _to_address(request, slug, list(dict.fromkeys([*_all_numbers(request.GET), *added])))
    context = _context(request, actor, project)
    return render_page(request, actor, "runs/compare.html", context, project=project)


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the part of the page that changes: facts and metrics."""
    context = _context(request, actor, project_for(actor, slug))
    return render(request, "runs/_compared.html", context)


def numbers_of(query: Mapping[str, str]) -> list[int]:
    """Return the numbers of the jobs in an address, no more than are compared."""
    return _all_numbers(query)[:MOST_COMPARED]


def _context(request: HttpRequest, actor: Actor, project: Project) -> dict[str, Any]:
    numbers = numbers_of(request.GET)
    view = _view(request.GET, numbers)
    found = comparison(actor, numbers, points=_POINTS, window=_window(view))
    hidden = set(_hidden(request.GET)) & set(numbers)
    return {
        "project": project,
        "nav": "jobs",
        "runs": found.runs,
        "first": found.runs[0] if found.runs else None,
        "is_final": all(run.job.is_final for run in found.runs),
        "is_mixed": len({run.job.project for run in found.runs}) > 1,
        "columns": [
            (run, view.query(jobs=_listed(n for n in numbers if n != run.job.id)))
            for run in found.runs
        ],
        "metrics": _metric_rows(found.runs),
        "fields": [
            (each.path, list(zip(numbers, each.values, strict=True))) for each in found.fields
        ],
        "changes": found.changes,
        "view": view,
        "jobs": _listed(numbers),
        "legend": [_legend_run(run, hidden, view) for run in found.runs],
        "is_full": len(numbers) >= MOST_COMPARED,
        **_charts(found, view, hidden),
    }


def _view(query: Mapping[str, str], numbers: Sequence[int]) -> ChartView:
    hidden = [each for each in _hidden(query) if each in numbers]
    others = {"jobs": _listed(numbers), "hide": _listed(hidden) or None}
    return ChartView.of(query, STEP, others)


def _window(view: ChartView) -> SeriesWindow | None:
    return SeriesWindow(*view.limits, by_step=view.by == STEP) if view.limits else None


def _legend_run(run: Run, hidden: set[int], view: ChartView) -> LegendRun:
    job = run.job.id
    others = hidden ^ {job}
    return LegendRun(
        job, run.job.name, job in hidden, view.query(hide=_listed(sorted(others)) or None)
    )


def _to_address(request: HttpRequest, slug: str, numbers: list[int]) -> HttpResponse:
    if len(numbers) > MOST_COMPARED:
        messages.error(request, f"Select at most {MOST_COMPARED} jobs to compare.")
    view = _view(request.GET, numbers[:MOST_COMPARED])
    return redirect(f"{reverse('web:compare', args=[slug])}?{view.query()}")


def _numbers(words: Sequence[str]) -> list[int]:
    """Return the numbers of jobs among words, each once."""
    found = (_NUMBER.fullmatch(word.strip()) for word in words)
    return list(dict.fromkeys(int(match[1]) for match in found if match))


def _all_numbers(query: Mapping[str, str]) -> list[int]:
    return _numbers(query.get("jobs", "").split(","))


def _hidden(query: Mapping[str, str]) -> list[int]:
    return _numbers(query.get("hide", "").split(","))


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _metric_rows(runs: Sequence[Run]) -> list[tuple[str, list[MetricCell]]]:
    """Return the last, lowest and highest value of each metric in each run."""
    names = sorted({metric.name for run in runs for metric in run.metrics})
    return [(name, [_cell(run, name) for run in runs]) for name in names]


def _cell(run: Run, name: str) -> MetricCell:
    found = next((metric for metric in run.metrics if metric.name == name), None)
    values = (found.value, found.lowest, found.highest) if found else (None, None, None)
    return MetricCell(run.job.id, *map(number, values))


def _charts(found: Comparison, view: ChartView, hidden: set[int]) -> dict[str, Any]:
    """Return the charts of the metrics, and of the GPU use over time."""
    kinds = _kinds(found, view.by)
    shown = [
        (kind, [line for line in lines if found.runs[line.number].job.id not in hidden])
        for kind, lines in kinds
    ]
    if view.window:
        shown = [(kind, [within(line, view.window) for line in lines]) for kind, lines in shown]
    window = view.window or window_of([line for _, lines in shown for line in lines])
    context = {
        "has_metrics": bool(found.series) or any(lines for _, lines in kinds),
        "left_out": max(0, len(kinds) - MOST_CHARTS),
        "links": view.links(window),
    }
    if window is None:
        return {"charts": [], "ends": [], **context}
    made = (
        line_chart(kind, lines, window, view.at, view.style) for kind, lines in shown[:MOST_CHARTS]
    )
    middle = (window.low + window.high) / 2
    say = _step if view.by == STEP else figures.span
    return {
        "charts": [chart for chart in made if chart],
        "ends": [say(value) for value in (window.low, middle, window.high)],
        "marked": None if view.at is None else say(view.at),
        **context,
    }


def _kinds(found: Comparison, by: str) -> list[tuple[Kind, list[LineSeries]]]:
    """Return the lines of each chart, whose numbers are the places of their runs."""
    begins = {run.job.id: begin_of(run) for run in found.runs}
    places = {run.job.id: place for place, run in enumerate(found.runs)}
    by_name: dict[str, list[LineSeries]] = defaultdict(list)
    for each in found.series:
        xs: Sequence[float] = each.steps if by == STEP else _since(begins[each.job], each.t)
        by_name[each.name].append(_line(places, each.job, xs, each.values))
    kinds = [(Kind(name, number, of_lines="runs"), lines) for name, lines in by_name.items()]
    if by == TIME:
        of_gpus = [
            _line(places, run.job.id, _since(begins[run.job.id], use.t), use.mean)
            for run, use in zip(found.runs, found.gpu_use, strict=True)
            if use
        ]
        kinds.insert(0, (Kind("GPU use", figures.percent, 100, of_lines="runs"), of_gpus))
    return kinds


def _line(
    places: Mapping[int, int], job: int, xs: Sequence[float], values: Sequence[float | None]
) -> LineSeries:
    return LineSeries(f"#{job}", places[job], xs, values)


def _since(begin: float, times: Sequence[float]) -> list[float]:
    """Return the seconds since the start of a run. Clocks of nodes may be behind the portal's."""
    return [max(0.0, at - begin) for at in times]


def _step(value: float) -> str:
    return f"step {value:,.0f}"
