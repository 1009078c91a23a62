"""Live pages: a stream that says "look again", upon which the page requests its parts.

What changed is never in a hint. A job page uses the stream of its log, which reports changes of the
job as well; the stream of the job table carries the rows that changed.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from jobs.errors import PermissionDeniedError, PortalError
from jobs.live import sse
from jobs.live.access import Access, read_session_again
from jobs.live.channel import QUEUE_TOPIC
from jobs.live.looking import Look, News, Watch, events_of
from jobs.live.stream_slots import STREAM_SLOTS
from jobs.models import Project
from jobs.permissions import project_for
from jobs.web.base.access import actor_of

CHANGED = sse.event("changed", "look")


class ChangesWatch(Watch):
    """A watch that sends one `changed` for any number of hints about `topics`."""

    def __init__(self, access: Access, *topics: str) -> None:
        super().__init__(access)
        self._topics = set(topics)
        self._is_hinted = False

    def topics(self) -> set[str]:
        """Return the topics to watch."""
        return self._topics

    def wants(self, hinted: set[str]) -> None:
        """Note the hint. Nothing is read here: the page requests its parts from its own address."""
        self._is_hinted = bool(hinted)

    def take(self, news: News, *, is_newest: bool) -> Look:
        """Return the `changed` event if there was a hint."""
        del news, is_newest
        return Look([CHANGED] if self._is_hinted else [])


@require_GET
def queue_stream(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Stream `/{slug}/queue/stream`: jobs of any project changed, or how machines are shared."""
    return stream_of(request, slug, "queue", lambda access, _: ChangesWatch(access, QUEUE_TOPIC))


def stream_of(
    request: HttpRequest, slug: str, name: str, watch_of: Callable[[Access, Project], Watch]
) -> HttpResponseBase:
    """Return the stream of a project's page `name` to its reader, or the reason for a refusal."""

    def watch(access: Access) -> Watch:
        return watch_of(access, project_for(actor_of(request), slug))

    return _stream(request, slug, name, watch)


def stream_of_all(
    request: HttpRequest, name: str, watch_of: Callable[[Access], Watch]
) -> HttpResponseBase:
    """Return the stream of a page `name` of all projects to its reader, or a refusal."""
    return _stream(request, "", name, watch_of)


def _stream(
    request: HttpRequest, slug: str, name: str, watch_of: Callable[[Access], Watch]
) -> HttpResponseBase:
    try:
        STREAM_SLOTS.refuse_when_full()
        # No user is signed in. A bare EventSource stays away after a 204; js/stream.js comes back,
        # but its page requests its parts on every loss, and goes to the sign-in page by itself.
        if not request.user.is_authenticated:
            return HttpResponse(status=204)
        right = Access(
            lambda: _access(request, slug),
            (name, request.user.pk, request.session.session_key, slug),
            request.user.pk or 0,
        )
        watch = watch_of(right)
        slot = STREAM_SLOTS.take(request.user.pk or 0)
    except PortalError as error:
        wait = getattr(error, "retry_after", None)
        headers = {"Retry-After": str(wait)} if wait else None
        return HttpResponse(status=error.http_status, headers=headers)
    return sse.response(request, events_of(watch, slot))


def _access(request: HttpRequest, slug: str) -> None:
    """Raise a PortalError when the session has ended, or its user is no member any more.

    Without a slug the page is about all projects of the user, whichever these are now.
    """
    read_session_again(request)
    if not request.user.is_authenticated:
        raise PermissionDeniedError("Sign in again.")
    if slug:
        project_for(actor_of(request), slug)
