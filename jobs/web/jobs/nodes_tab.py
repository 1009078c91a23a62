"""The nodes of a job: a grid of all, their metrics, meshes, tasks and stack dumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from jobs.models import Job
from jobs.permissions import Actor, job_for
from jobs.readers.gateway_sessions import attached_programs
from jobs.readers.nodes import job_nodes
from jobs.readers.tasks import has_tasks
from jobs.statuses import JobKind
from jobs.web.base.access import signed_in
from jobs.web.jobs.hosts_tab import hosts_context, number_in
from jobs.web.jobs.mesh_tab import mesh_context
from jobs.web.jobs.stacks_tab import stacks_context
from jobs.web.jobs.tasks_tab import tasks_context
from jobs.web.jobs.terminal_page import may_open_terminal
from jobs.web.jobs.workers_part import workers_part
from monarch_client.wire.attempts import Worker

GRID, METRICS, MESH, TASKS, STACKS = "grid", "metrics", "mesh", "tasks", "stacks"
_LABELS = {GRID: "Grid", METRICS: "Metrics", MESH: "Mesh", TASKS: "Tasks", STACKS: "Stacks"}
# Addresses of earlier versions, each a tab of its own, and the view that replaced it.
OLD_TABS = {"workers": GRID, "hosts": METRICS, "mesh": MESH, "stacks": STACKS}
# The part of the address that a link to another view keeps.
_KEPT = ("attempt", "rank")


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Render the tab as it is now."""
    return render(request, "jobs/_nodes.html", nodes_context(actor, slug, job_id, request.GET))


def redirect_old_tab(request: HttpRequest, slug: str, job_id: int, tab: str) -> HttpResponse:
    """Redirect from the address of a tab of an earlier version to its view."""
    query = request.GET.copy()
    query["show"] = OLD_TABS[tab]
    return redirect(f"{reverse('web:job_tab', args=[slug, job_id, 'nodes'])}?{query.urlencode()}")


def nodes_context(actor: Actor, slug: str, job_id: int, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the tab; `query` may choose a view, an attempt and a node."""
    job = job_for(actor, slug, job_id)
    names = [name for name in _CONTEXTS if _has_view(job, name, number_in(query, "attempt"))]
    show = query.get("show", "")
    show = show if show in names else GRID
    context = _CONTEXTS[show](actor, slug, job_id, query)
    kept = {name: query[name] for name in _KEPT if query.get(name)}
    return context | {
        "slug": slug,
        "job_id": job_id,
        "show": show,
        "shows": [(name, _LABELS[name], urlencode({**kept, "show": name})) for name in names],
        "asked_attempt": number_in(query, "attempt"),
        "is_monarch": job.kind == JobKind.MONARCH,
    }


def _has_view(job: Job, name: str, attempt: int | None) -> bool:
    """Whether the job has something for a view to show."""
    if name == TASKS:
        return has_tasks(job, attempt)
    return name != MESH or job.kind == JobKind.MONARCH


def _grid_context(actor: Actor, slug: str, job_id: int, query: Mapping[str, str]) -> dict[str, Any]:
    found = job_nodes(actor, slug, job_id, number_in(query, "attempt"))
    by_rank = {node.worker.rank: node for node in found.nodes}
    part = workers_part(
        [node.worker for node in found.nodes], found.num_nodes, query.get("workers", "")
    )
    rows = [by_rank[worker.rank] for worker in part.rows]
    return {
        "grid": found,
        "nodes_part": part,
        "rows": rows,
        "has_metrics": any(node.host and node.host.at for node in rows),
        "has_gpus": any(node.host and node.host.gpus for node in rows),
        "has_exits": any(node.worker.exit_code is not None for node in rows),
        "has_notes": any(_has_note(node.worker) for node in rows),
        "sessions": attached_programs(actor, slug, job_id),
        "is_final": found.is_final,
        "may_open_terminal": may_open_terminal(actor, job_for(actor, slug, job_id)),
    }


def _has_note(worker: Worker) -> bool:
    return bool(worker.detail) or worker.ended_after is not None


_CONTEXTS: dict[str, Callable[[Actor, str, int, Mapping[str, str]], dict[str, Any]]] = {
    GRID: _grid_context,
    METRICS: hosts_context,
    MESH: mesh_context,
    TASKS: tasks_context,
    STACKS: stacks_context,
}
