"""The graph of a job as a tab: what it depends on, and what depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from jobs.permissions import Actor
from jobs.readers.job_graph import job_graph
from jobs.web.base.access import signed_in
from jobs.web.jobs.graph_picture import NODE_HEIGHT, NODE_WIDTH, picture


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Render the tab as it is now."""
    return render(request, "jobs/_graph.html", graph_context(actor, slug, job_id, request.GET))


def graph_context(actor: Actor, slug: str, job_id: int, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the tab; with `whole` in `query` nothing is folded."""
    graph = job_graph(actor, slug, job_id)
    return {
        "slug": slug,
        "graph": graph,
        "picture": picture(graph, unfolded="whole" in query),
        "node_width": NODE_WIDTH,
        "node_height": NODE_HEIGHT,
    }
