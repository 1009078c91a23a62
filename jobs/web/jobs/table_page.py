"""The job table: filters from the address, one page of rows, and the same rows live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from jobs.errors import InvalidCursorError
from jobs.models import Project
from jobs.permissions import Actor, Verb, project_for, verbs_of
from jobs.readers.job_table import JobFilter, gpu_types, job_table, status_counts
from jobs.statuses import JobKind, JobStatus
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page

PAGE_SIZE = 50
# Always offered, so that the row of chips does not jump while the first jobs pass through.
USUAL = (JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.SUCCEEDED, JobStatus.FAILED)


@dataclass(frozen=True, slots=True)
class Chip:
    """One status to filter by. `query` is the address with this chip the other way round."""

    status: str
    label: str
    count: int
    chosen: bool
    query: str


@require_safe
@signed_in
def job_table_page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the page. An invalid cursor leads back to the first page."""
    project = project_for(actor, slug)
    try:
        context = table_context(actor, project, request.GET)
    except InvalidCursorError:
        return _first_page(request)
    context["gpu_types"] = gpu_types(actor, project)
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
    return redirect(f"{request.path}?{_query(request.GET, cursor=None)}")


def table_context(actor: Actor, project: Project, query: QueryDict) -> dict[str, Any]:
    """Return the context of the table."""
    wanted = filter_of(query)
    table = job_table(actor, project, wanted, cursor=query.get("cursor") or None, limit=PAGE_SIZE)
    counts = status_counts(actor, project)
    verbs = verbs_of(actor, project)
    return {
        "project": project,
        "nav": "jobs",
        "table": table,
        "chips": _chips(query, wanted, counts),
        "total": sum(counts.values()),
        "filter": wanted,
        "filtered": wanted != JobFilter(),
        "kinds": JobKind.choices,
        "all_statuses_query": _query(query, status=None),
        "everyone_query": _query(query, user=None),
        "mine_query": _query(query, user="me"),
        "next_query": _query(query, keep_cursor=True, cursor=table.next),
        "previous_query": _query(query, keep_cursor=True, cursor=table.previous),
        "live_query": _query(query, keep_cursor=True),
        "may_submit": Verb.SUBMIT_JOB in verbs,
        "may_delete": Verb.DELETE_JOB in verbs,
    }


def filter_of(query: QueryDict) -> JobFilter:
    """Return the filter in the address; unknown values are left out."""
    statuses = (word for text in query.getlist("status") for word in text.split(","))
    kind = query.get("kind", "")
    return JobFilter(
        status=tuple(status for status in statuses if status in JobStatus.values),
        user=_word(query, "user"),
        kind=kind if kind in JobKind.values else "",
        gpu=_word(query, "gpu").strip().upper(),
        q=_word(query, "q").strip(),
    )


def _word(query: QueryDict, key: str) -> str:
    # The database takes no NUL.
    return query.get(key, "").replace("\0", "")


def _chips(query: QueryDict, wanted: JobFilter, counts: dict[str, int]) -> list[Chip]:
    shown = [s for s in JobStatus if s in USUAL or s in wanted.status or counts.get(s)]
    return [
        Chip(
            status=status.value,
            label=status.label,
            count=counts.get(status, 0),
            chosen=status in wanted.status,
            query=_query(query, status=_toggled(wanted.status, status)),
        )
        for status in shown
    ]


def _toggled(chosen: tuple[str, ...], status: str) -> str | None:
    """Return the chosen statuses with `status` added or removed, comma-joined; None if none is."""
    others = [one for one in chosen if one != status]
    return ",".join(others if status in chosen else [*chosen, status]) or None


def _query(query: QueryDict, *, keep_cursor: bool = False, **changes: str | None) -> str:
    """Return the query with `changes`; None removes a key. A new filter has no cursor."""
    copy = query.copy()
    if not keep_cursor:
        copy.pop("cursor", None)
    for key, value in changes.items():
        copy.pop(key, None)
        if value is not None:
            copy[key] = value
    return copy.urlencode(safe=",")
