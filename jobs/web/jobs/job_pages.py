"""The job page: header, ending, stages, and tabs such as log, events, nodes and graph."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from jobs.actions.jobs.annotate import NOTE_LIMIT
from jobs.ground import clock
from jobs.permissions import Actor, job_for, project_for
from jobs.readers.job_graph import has_graph
from jobs.readers.job_history import job_history
from jobs.readers.job_page import JobPage, job_page
from jobs.readers.named_jobs import named_jobs
from jobs.readers.removed_logs import removed_logs
from jobs.readers.wait_explanation import explain_wait
from jobs.statuses import JobStatus, WaitReason
from jobs.web.base.access import signed_in
from jobs.web.base.forms import EXTENSIONS
from jobs.web.base.frame import render_page
from jobs.web.jobs.charts_tab import charts_context
from jobs.web.jobs.ending import diagnosis_line, evidence_of, hint_of
from jobs.web.jobs.graph_tab import graph_context
from jobs.web.jobs.hosts_tab import number_in
from jobs.web.jobs.life_picture import parts_of
from jobs.web.jobs.nodes_tab import OLD_TABS, nodes_context, redirect_old_tab
from jobs.web.jobs.terminal_page import may_open_terminal
from monarch_client.runner.vocabulary.monarch_lines import OWN_LINE
from monarch_client.spec.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from monarch_client.spec.tpu import hosts_of_node
from monarch_client.wire.attempts import Attempt

TABS = (
    ("log", "Log"),
    ("events", "Events"),
    ("charts", "Charts"),
    ("nodes", "Nodes"),
    ("graph", "Graph"),
    ("spec", "Spec"),
)
# The tabs that are requested when they are opened.
_CONTEXTS = {"charts": charts_context, "nodes": nodes_context, "graph": graph_context}
EVENTS_SHOWN = 1000
RANKS_AS_CHIPS = 16


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str, job_id: int, tab: str = "") -> HttpResponse:
    """Show the whole page with one of its tabs open."""
    if tab in OLD_TABS:
        return redirect_old_tab(request, slug, job_id, tab)
    if tab and tab not in dict(TABS):
        raise Http404("A job has no such page.")
    context = page_context(actor, slug, job_id, request.GET)
    tab = tab or _first_tab(context["page"], job_id)
    project = project_for(actor, slug)
    if tab in _CONTEXTS:
        context |= _CONTEXTS[tab](actor, slug, job_id, request.GET)
    context |= {"tab": tab, "tabs": _tabs(job_id, tab), "project": project, "nav": "jobs"}
    return render_page(request, actor, "jobs/page.html", context, project=project)


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Render the parts of the page that change; each is the partial of the first paint."""
    context = page_context(actor, slug, job_id, request.GET)
    return render(request, "jobs/_page_live.html", context)


def page_context(actor: Actor, slug: str, job_id: int, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the page; `query` may choose an attempt."""
    number = number_in(query, "attempt")
    found = job_page(actor, slug, job_id)
    # A held job waits for a person alone, and its message names the person.
    waits = found.job.status == JobStatus.QUEUED and found.job.wait_reason != WaitReason.HELD
    shown = _attempt_of(found, number)
    events = job_history(actor, slug, job_id, limit=EVENTS_SHOWN)
    evidence = evidence_of(found.job, shown, events)
    ranks = range(found.job.num_nodes * hosts_of_node(found.job.gpu_type))
    is_newest = shown is None or shown == found.attempts[0]
    job = job_for(actor, slug, job_id)
    waiting = explain_wait(actor, job) if waits else None
    # Who looks at the newest one goes on with the job, to the next.
    kept = {} if is_newest or shown is None else {"attempt": shown.number}
    return {
        "page": found,
        "job": found.job,
        "attempt": shown,
        "is_newest": is_newest,
        "may_open_terminal": may_open_terminal(actor, job),
        "waiting": waiting,
        "headline": _headline(found.job.status, shown),
        "named": named_jobs(actor, found.job.wait_message, waiting.sentence if waiting else ""),
        "stages": shown.stages if shown else [],
        "live_query": urlencode(kept),
        "own_line": OWN_LINE,
        "log_removed": removed_logs(job_id, None if is_newest or not shown else shown.number),
        "lowest_priority": LOWEST_PRIORITY,
        "highest_priority": HIGHEST_PRIORITY,
        "extensions": EXTENSIONS,
        "note_limit": NOTE_LIMIT,
        "extension_key": secrets.token_hex(8),
        "evidence": evidence,
        "diagnosis_line": diagnosis_line(found.job, shown),
        "hint": hint_of(found.job, shown, evidence),
        "events": events,
        "life": parts_of(found.job, events, found.attempts, clock.now()),
        "ranks": list(ranks[:RANKS_AS_CHIPS]),
        "more_ranks": list(ranks[RANKS_AS_CHIPS:]),
    }


def _first_tab(found: JobPage, job_id: int) -> str:
    """Return the tab that opens by itself: the log, unless there can be none."""
    if found.attempts or not found.job.is_final:
        return "log"
    return "graph" if has_graph(job_id) else "spec"


def _tabs(job_id: int, tab: str) -> list[tuple[str, str]]:
    """Return the tabs; the graph only of a job with dependencies."""
    return [each for each in TABS if each[0] != "graph" or tab == "graph" or has_graph(job_id)]


def _attempt_of(found: JobPage, number: int | None) -> Attempt | None:
    """Return the requested attempt, else the newest; None before the first."""
    if number is None:
        return found.attempts[0] if found.attempts else None
    for attempt in found.attempts:
        if attempt.number == number:
            return attempt
    raise Http404(f"This job has no attempt {number}.")


def _headline(status: str, attempt: Attempt | None) -> str:
    """Return the diagnosis as the headline of a failed job; empty if there is none."""
    is_known = status == JobStatus.FAILED and attempt and attempt.diagnosis
    return attempt.diagnosis.title if is_known and attempt and attempt.diagnosis else ""
