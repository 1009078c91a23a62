"""The page of an array: a grid with the status of each job, rows of some, and actions on all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from jobs.actions.jobs.arrays import cancel_array, rerun_failed
from jobs.permissions import Actor, project_for
from jobs.readers.job_array import Cell, array_for, array_part, job_at, misses_dependencies
from jobs.statuses import JobStatus
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.frame import render_page
from jobs.web.jobs.hosts_tab import number_in

# A letter for each status: the page draws a grid from one text. "-": the job was deleted.
LETTERS = {
    JobStatus.QUEUED: "Q",
    JobStatus.PROVISIONING: "P",
    JobStatus.SETTING_UP: "U",
    JobStatus.RUNNING: "R",
    JobStatus.RECOVERING: "V",
    JobStatus.STOPPING: "T",
    JobStatus.SUCCEEDED: "S",
    JobStatus.FAILED: "F",
    JobStatus.CANCELLED: "C",
}
_DELETED = "-"
# Above so many jobs the cells are smaller; how many cells and rows a wide screen shows.
_MOST_LARGE_CELLS = 1000
_LARGE, _SMALL = (66, 16), (98, 26)


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str, array_id: int) -> HttpResponse:
    """Show the whole page."""
    context = _context(request, actor, slug, array_id)
    return render_page(request, actor, "arrays/page.html", context, project=context["project"])


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str, array_id: int) -> HttpResponse:
    """Render the parts of it that change."""
    return render(request, "arrays/_live.html", _context(request, actor, slug, array_id))


@require_POST
@signed_in
def cancel(request: HttpRequest, actor: Actor, slug: str, array_id: int) -> HttpResponse:
    """End what has not ended and stay on the page."""
    array = array_for(actor, slug, array_id)
    back = reverse("web:array", args=[slug, array_id])
    return attempt_action(request, lambda: cancel_array(actor, array), back=back)


@require_POST
@signed_in
def rerun(request: HttpRequest, actor: Actor, slug: str, array_id: int) -> HttpResponse:
    """Run again what failed and stay on the page."""
    array = array_for(actor, slug, array_id)
    back = reverse("web:array", args=[slug, array_id])
    drop = "drop_deleted" in request.POST
    return attempt_action(request, lambda: rerun_failed(actor, array, drop_deleted=drop), back=back)


@require_safe
@signed_in
def job(request: HttpRequest, actor: Actor, slug: str, array_id: int, index: int) -> HttpResponse:
    """Redirect to the newest job at an index of the array."""
    del request
    return redirect("web:job", slug, job_at(actor, slug, array_id, index))


def _context(request: HttpRequest, actor: Actor, slug: str, array_id: int) -> dict[str, Any]:
    status = request.GET.get("status", "")
    status = status if status in JobStatus.values else ""
    part = array_part(
        actor, slug, array_id, status=status, page=number_in(request.GET, "page") or 1
    )
    found = part.array
    return {
        "array": found,
        "part": part,
        "status": status,
        "live_query": urlencode({"status": status, "page": part.page}),
        "earlier": urlencode({"status": status, "page": part.page - 1}),
        "later": urlencode({"status": status, "page": part.page + 1}),
        "letters": _letters(part.cells, found.size),
        "shares": [
            (each, found.counts[each], LETTERS[each]) for each in JobStatus if each in found.counts
        ],
        "labels": json.dumps({letter: each.label for each, letter in LETTERS.items()}),
        "only": LETTERS[JobStatus(status)] if status else "",
        "retries": json.dumps({cell.index: cell.retries for cell in part.cells if cell.retries}),
        "values": json.dumps(list(found.values.items())),
        "is_small": found.size > _MOST_LARGE_CELLS,
        "grid_rows": _grid_rows(found.size),
        "misses_dependencies": found.can_rerun_failed and misses_dependencies(found.id),
        "project": project_for(actor, slug),
        "nav": "jobs",
    }


def _letters(cells: Iterable[Cell], size: int) -> str:
    """Return the letter of each index, in order."""
    letters = [_DELETED] * size
    for cell in cells:
        letters[cell.index] = LETTERS[JobStatus(cell.status)]
    return "".join(letters)


def _grid_rows(size: int) -> int:
    """Return the height of the grid, in rows of a wide screen: it scrolls if it is higher."""
    in_row, most = _SMALL if size > _MOST_LARGE_CELLS else _LARGE
    return min(most, -(-size // in_row))
