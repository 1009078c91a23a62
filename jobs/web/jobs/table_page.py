"""The job table: filters from the address, one page of rows, and the same rows live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from jobs.errors import InvalidCursorError
from jobs.models import Project
from jobs.models.saved_view import NAME_LIMIT
from jobs.permissions import Actor, Verb, project_for
from jobs.readers.job_filter import (
    COUNT_LIMIT,
    REASONS,
    JobFilter,
    filter_choices,
    has_jobs,
    matching_counts,
)
from jobs.readers.job_pages import WINDOW, JobOrder
from jobs.readers.job_table import job_table
from jobs.readers.saved_views import saved_views
from jobs.statuses import JobKind, JobStatus
from jobs.web.base.access import signed_in
from jobs.web.base.clocks import UTC, clock_of
from jobs.web.base.frame import render_page
from jobs.web.jobs.table_query import changed, filter_of, order_of, view_query_of

PAGE_SIZE = 50
# Always offered, so that the row of chips does not jump while the first jobs pass through.
USUAL = (JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.SUCCEEDED, JobStatus.FAILED)
TIMES = (
    ("1h", "Last hour"),
    ("24h", "Last 24 hours"),
    ("7d", "Last 7 days"),
    ("30d", "Last 30 days"),
)
ORDERS = (
    ("status", "By status"),
    ("name", "By name"),
    ("user", "By owner"),
    ("-priority", "Highest priority first"),
    ("-nodes", "Most GPUs first"),
    ("-duration", "Longest first"),
    ("-ended", "Ended last first"),
    ("-cost", "Most expensive first"),
)
# The columns that sort, and whether the first click sorts upwards.
HEADINGS = {
    "status": ("Status", True),
    "name": ("Job", True),
    "user": ("By", True),
    "nodes": ("Nodes", False),
    "duration": ("Duration", False),
    "cost": ("Cost", False),
}


@dataclass(frozen=True, slots=True)
class Chip:
    """One status to filter by. `query` is the address with this chip the other way round."""

    status: str
    label: str
    count: str
    chosen: bool
    query: str


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a column; `query` is the address with the next order by it.

    `direction` is "ascending", "descending", or "" if the table has another order.
    """

    label: str
    direction: str
    query: str


@require_safe
@signed_in
def job_table_page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the page. An invalid cursor leads back to the first page."""
    project = project_for(actor, slug)
    try:
        context = table_context(actor, project, request.GET, clock_of(request).zone)
    except InvalidCursorError:
        return _first_page(request)
    views = saved_views(actor, project)
    current = view_query_of(request.GET.urlencode())
    context |= {"views": views, "view_query": current, "view_name_limit": NAME_LIMIT}
    context |= {"choices": filter_choices(actor, project), "kinds": JobKind.choices}
    context |= {"reasons": REASONS, "times": TIMES, "orders": ORDERS}
    return render_page(request, actor, "jobs/table.html", context, project=project)


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the parts of the table that change, for the address's filters."""
    project = project_for(actor, slug)
    try:
        context = table_context(actor, project, request.GET)
    except InvalidCursorError:
        return _first_page(request)
    return render(request, "jobs/_table_live.html", context)


def _first_page(request: HttpRequest) -> HttpResponse:
    return redirect(f"{request.path}?{changed(request.GET, cursor=None)}")


def table_context(
    actor: Actor, project: Project, query: QueryDict, zone: str = UTC
) -> dict[str, Any]:
    """Return the context of the table; the address's days are of its own zone, or else of this."""
    wanted, order = filter_of(query, zone), order_of(query)
    # Rows that are rendered for several readers have no zone but that of the address.
    days_zone = query.get("zone", zone) if query.get("from") or query.get("to") else None
    cursor = query.get("cursor") or None
    table = job_table(actor, project, wanted, order, cursor=cursor, limit=PAGE_SIZE)
    counts = matching_counts(actor, project, wanted)
    return {
        "project": project,
        "nav": "jobs",
        "table": table,
        "order": order,
        "window": f"{WINDOW:,}" if _is_partial(order, wanted, counts) else "",
        "headings": _headings(query, order.sort),
        "chips": _chips(query, wanted, counts),
        "total": _text_of(list(counts.values())),
        "has_any": bool(counts) or has_jobs(actor, project),
        "filter": wanted,
        "filtered": wanted != JobFilter(),
        "all_statuses_query": changed(query, status=None),
        "next_query": changed(query, keep_cursor=True, cursor=table.next),
        "previous_query": changed(query, keep_cursor=True, cursor=table.previous),
        "live_query": changed(query, keep_cursor=True, zone=days_zone),
        "first_day": query.get("from", ""),
        "last_day": query.get("to", ""),
        "may_submit": Verb.SUBMIT_JOB in table.verbs,
        "may_delete": Verb.DELETE_JOB in table.verbs,
    }


def _is_partial(order: JobOrder, wanted: JobFilter, counts: dict[str, int]) -> bool:
    """Whether an order leaves out the oldest jobs that match."""
    shown = [n for status, n in counts.items() if not wanted.status or status in wanted.status]
    return not order.is_plain and sum(shown) > WINDOW


def _headings(query: QueryDict, sort: str) -> dict[str, Heading]:
    headings = {name: _heading(query, sort, name) for name in HEADINGS}
    newest = "" if sort else "descending"
    headings["submitted"] = Heading("Submitted", newest, changed(query, sort=None))
    return headings


def _heading(query: QueryDict, sort: str, name: str) -> Heading:
    label, is_upwards = HEADINGS[name]
    up, down = name, f"-{name}"
    first, second = (up, down) if is_upwards else (down, up)
    following = {first: second, second: None}.get(sort, first)
    direction = {up: "ascending", down: "descending"}.get(sort, "")
    return Heading(label, direction, changed(query, sort=following))


def _text_of(counts: list[int]) -> str:
    """Return the sum of counts; with a plus if one of them stopped at the limit."""
    known = [min(count, COUNT_LIMIT) for count in counts]
    return f"{sum(known):,}{'+' if max(counts, default=0) > COUNT_LIMIT else ''}"


def _chips(query: QueryDict, wanted: JobFilter, counts: dict[str, int]) -> list[Chip]:
    shown = [s for s in JobStatus if s in USUAL or s in wanted.status or counts.get(s)]
    return [
        Chip(
            status=status.value,
            label=status.label,
            count=_text_of([counts.get(status, 0)]),
            chosen=status in wanted.status,
            query=changed(query, status=_toggled(wanted.status, status)),
        )
        for status in shown
    ]


def _toggled(chosen: tuple[str, ...], status: str) -> str | None:
    """Return the chosen statuses with `status` added or removed, comma-joined; None if none is."""
    others = [one for one in chosen if one != status]
    return ",".join(others if status in chosen else [*chosen, status]) or None
