"""The page that compares runs: facts, specifications, and metrics in common charts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from jobs.permissions import Actor, project_for
from jobs.readers.comparison import comparison
from jobs.web.base import figures
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page
from jobs.web.jobs.charts_tab import MOST_CHARTS, STEP, TIME
from jobs.web.jobs.history_page import value_of
from jobs.web.jobs.line_charts import Kind, LineChart, LineSeries, line_chart, number, window_of
from monarch_client.wire.runs import MOST_COMPARED, Comparison, Run

# All charts together.
_POINTS = 12_000
_NUMBER = re.compile(r"#?([0-9]{1,18})")
_FEWEST_COMPARED = 2


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Compare the jobs in the address; a selection that was posted leads to its address."""
    project = project_for(actor, slug)
    if request.method == "POST":
        return _to_address(request, slug, _numbers(request.POST.getlist("job")))
    numbers = _numbers(request.GET.get("jobs", "").split(","))
    if added := _numbers([request.GET.get("add", "")]):
        return _to_address(request, slug, list(dict.fromkeys([*numbers, *added])))
    numbers = numbers[:MOST_COMPARED]
    found = comparison(actor, numbers, points=_POINTS)
    by = TIME if request.GET.get("by") == TIME else STEP
    context = {
        "project": project,
        "nav": "jobs",
        "runs": found.runs,
        "first": found.runs[0] if found.runs else None,
        "is_mixed": len({run.job.project for run in found.runs}) > 1,
        "columns": [
            (run, _query([n for n in numbers if n != run.job.id], by)) for run in found.runs
        ],
        "metrics": _metric_rows(found.runs),
        "fields": [
            (each.path, list(zip(numbers, each.values, strict=True))) for each in found.fields
        ],
        "changes": found.changes,
        "by": by,
        "jobs": ",".join(map(str, numbers)),
        "axes": [(f"By {axis}", axis, _query(numbers, axis)) for axis in (STEP, TIME)],
        "is_full": len(numbers) >= MOST_COMPARED,
        **_charts(found, by),
    }
    return render_page(request, actor, "runs/compare.html", context, project=project)


def _to_address(request: HttpRequest, slug: str, numbers: list[int]) -> HttpResponse:
    if len(numbers) > MOST_COMPARED:
        messages.error(request, f"Select at most {MOST_COMPARED} jobs to compare.")
    place = reverse("web:compare", args=[slug])
    return redirect(f"{place}?{_query(numbers[:MOST_COMPARED], request.GET.get('by', ''))}")


def _numbers(words: Sequence[str]) -> list[int]:
    """Return the numbers of jobs among words, each once."""
    found = (_NUMBER.fullmatch(word.strip()) for word in words)
    return list(dict.fromkeys(int(match[1]) for match in found if match))


def _query(numbers: Sequence[int], by: str) -> str:
    known = {"jobs": ",".join(map(str, numbers))} | ({"by": TIME} if by == TIME else {})
    return urlencode(known, safe=",")


def _metric_rows(runs: Sequence[Run]) -> list[tuple[str, list[tuple[int, str]]]]:
    """Return the last value of each metric in each run, by the run's number."""
    names = sorted({metric.name for run in runs for metric in run.metrics})
    return [(name, [(run.job.id, number(value_of(run, name))) for run in runs]) for name in names]


def _charts(found: Comparison, by: str) -> dict[str, Any]:
    """Return the charts of the metrics, and of the GPU use over time."""
    begins = {run.job.id: _begin(run) for run in found.runs}
    places = {run.job.id: place for place, run in enumerate(found.runs)}
    by_name: dict[str, list[LineSeries]] = defaultdict(list)
    for each in found.series:
        xs: Sequence[float] = each.steps if by == STEP else _since(begins, each.job, each.t)
        by_name[each.name].append(_line(places, each.job, xs, each.values))
    kinds = [(Kind(name, number, of_lines="runs"), lines) for name, lines in by_name.items()]
    if by == TIME:
        uses = zip(found.runs, found.gpu_use, strict=True)
        of_gpus = [
            _line(places, run.job.id, _since(begins, run.job.id, use.t), use.mean)
            for run, use in uses
            if use
        ]
        kinds.insert(0, (Kind("GPU use", figures.percent, 100, of_lines="runs"), of_gpus))
    window = window_of([line for _, lines in kinds for line in lines])
    if window is None:
        return {"charts": [], "ends": [], "left_out": 0}
    made = (line_chart(kind, lines, window) for kind, lines in kinds[:MOST_CHARTS])
    charts: list[LineChart] = [chart for chart in made if chart]
    middle = (window.low + window.high) / 2
    say = _step if by == STEP else figures.span
    return {
        "charts": charts,
        "ends": [say(value) for value in (window.low, middle, window.high)],
        "left_out": max(0, len(kinds) - MOST_CHARTS),
    }


def _line(
    places: Mapping[int, int], job: int, xs: Sequence[float], values: Sequence[float | None]
) -> LineSeries:
    return LineSeries(f"#{job}", places[job], xs, values)


def _since(begins: Mapping[int, float], job: int, times: Sequence[float]) -> list[float]:
    """Return the seconds since the start of a job. Clocks of nodes may be behind the portal's."""
    return [max(0.0, at - begins[job]) for at in times]


def _begin(run: Run) -> float:
    return (run.job.started_at or run.job.created_at).timestamp()


def _step(value: float) -> str:
    return f"step {value:,.0f}"
