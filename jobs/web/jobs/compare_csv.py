"""The histories of compared runs as a CSV file: one row for each point of each metric."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from jobs.logs.lines import moment_of
from jobs.permissions import Actor, project_for
from jobs.readers.comparison import begin_of, comparison
from jobs.web.base.access import signed_in
from jobs.web.jobs.compare_page import numbers_of
from monarch_client.wire.runs import Comparison

COLUMNS = ("job", "metric", "step", "time", "seconds", "value")
# All that six runs with a few dozen metrics each have.
_POINTS = 200_000


@require_safe
@signed_in
def download(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Return the file of the jobs in the address."""
    project_for(actor, slug)
    numbers = numbers_of(request.GET)
    name = "-".join(map(str, numbers))
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="metrics-{name}.csv"'
    writer = csv.writer(answer)
    writer.writerow(COLUMNS)
    writer.writerows(_rows(comparison(actor, numbers, points=_POINTS)))
    return answer


def _rows(found: Comparison) -> Iterator[tuple[Any, ...]]:
    """Yield the points in the order of `COLUMNS`; a value that was not finite is empty."""
    begins = {run.job.id: begin_of(run) for run in found.runs}
    for each in found.series:
        for t, step, value in zip(each.t, each.steps, each.values, strict=True):
            time = moment_of(int(t * 1000)).isoformat(timespec="milliseconds")
            yield each.job, each.name, step, time, round(t - begins[each.job], 3), value
