"""Live pages: a stream that says "look again", upon which the page asks for its parts.

One stream serves every filter of a table: what changed is never in a hint. A job page uses the
stream of its log, which tells of the job as well.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from jobs.errors import NotFoundError
from jobs.live import sse
from jobs.live.channel import project_topic
from jobs.live.looking import Look, events_of, in_thread
from jobs.models import Project
from jobs.permissions import project_for
from jobs.web.access import actor_of


class ChangesWatch:
    """Sends `changed` whenever one of `topics` was hinted at, many hints at once as one."""

    def __init__(self, *topics: str) -> None:
        self._topics = set(topics)

    def topics(self) -> set[str]:
        """What to watch."""
        return self._topics

    def look(self, hinted: set[str]) -> Look:
        """Nothing is read here: the page asks with its own address."""
        return Look([sse.event("changed", "look")] if hinted else [])


@require_safe
async def job_table_stream(request: HttpRequest, slug: str) -> HttpResponseBase:
    """`/{slug}/jobs/stream`: the project's jobs changed."""
    try:
        project = await in_thread(_project, request, slug)
    except NotFoundError:
        return HttpResponse(status=404)
    # Nobody is signed in: 204 tells the browser not to come back.
    if project is None:
        return HttpResponse(status=204)
    return sse.response(events_of(ChangesWatch(project_topic(project.pk))))


def _project(request: HttpRequest, slug: str) -> Project | None:
    if not request.user.is_authenticated:
        return None
    return project_for(actor_of(request), slug)
