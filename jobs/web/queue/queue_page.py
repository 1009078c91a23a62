"""The queue: queues, who waits in which order, quotas and shares, of all projects."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from jobs.permissions import Actor, may_change_installation, project_for
from jobs.readers.queue_state import PAGE, QueueState
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page

_MOST_DIGITS = 6


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the page as it is now."""
    project = project_for(actor, slug)
    context = {"project": project, "nav": "queue", **_context(request, actor)}
    return render_page(request, actor, "queue/page.html", context, project=project)


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the part of the page that changes."""
    context = {"project": project_for(actor, slug), **_context(request, actor)}
    return render(request, "queue/_state.html", context)


def _context(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    state = QueueState(actor)
    queues = state.queues()
    unplanned = sum(row.waiting + row.held for row in queues) - state.number_waiting
    number = _page_number(request)
    last = max(1, -(-state.number_waiting // PAGE))
    number = min(number, last)
    return {
        "waiting": state.waiting((number - 1) * PAGE, PAGE),
        "number_waiting": state.number_waiting,
        # A long queue's plan may be a moment older than the numbers of its queues.
        "number_apart": max(0, unplanned),
        "page": number,
        "pages": last,
        "queues": queues,
        "quotas": state.quotas(),
        "shares": state.shares(),
        "may_set": may_change_installation(actor),
    }


def _page_number(request: HttpRequest) -> int:
    """Return the page number from 1; 1 if the text is no number."""
    text = request.GET.get("page", "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return max(1, int(text)) if is_number else 1
