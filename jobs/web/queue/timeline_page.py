"""The timeline of the queue: what has machines until when, and what is expected to start."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from jobs.permissions import Actor, project_for
from jobs.readers.timeline import timeline
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page
from jobs.web.queue.timeline_picture import AXIS_HEIGHT, Scale, lanes_of, legend_of

# Hours that the page shows, half of them before the present.
SPANS = {"1": "1 h", "6": "6 h", "24": "24 h", "168": "7 d"}
_DEFAULT = "1"


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the page as it is now."""
    project = project_for(actor, slug)
    context = {"project": project, "nav": "queue", **_context(request, actor)}
    return render_page(request, actor, "queue/timeline.html", context, project=project)


@require_safe
@signed_in
def live(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the part of the page that changes."""
    context = {"project": project_for(actor, slug), **_context(request, actor)}
    return render(request, "queue/_timeline.html", context)


def _context(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    hours = request.GET.get("hours", _DEFAULT)
    hours = hours if hours in SPANS else _DEFAULT
    found = timeline(actor, timedelta(hours=int(hours)))
    scale = Scale(found.begin, found.end, found.now)
    lanes = lanes_of(found)
    return {
        "timeline": found,
        "lanes": lanes,
        "legend": legend_of(lanes),
        "span_s": int(hours) * 3600,
        "ticks": scale.ticks(),
        "now_at": scale.at(found.now),
        "axis_height": AXIS_HEIGHT,
        "hours": hours,
        "spans": SPANS.items(),
    }
