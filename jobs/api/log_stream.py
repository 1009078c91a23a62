"""A job live: its log and its changes as server-sent events, resumed exactly where they broke.

Events: `line` (a JSON list of lines; the id is the last one's cursor), `job` (it changed: read it
again), `end` (the job is over and every line is out; nothing follows).
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from jobs.api.authentication import authenticate, authenticate_again
from jobs.api.errors import problem_of
from jobs.api.log_inputs import StreamQuery, checked, choice_of
from jobs.api.log_views import line_row
from jobs.errors import NotFoundError
from jobs.live import sse
from jobs.live.access import Access
from jobs.live.channel import job_topic, log_topic
from jobs.live.looking import Look, News, Watch, events_of, in_thread
from jobs.live.places import PLACES, Place
from jobs.live.shared_reads import Common
from jobs.logs.cursor import START, Cursor, parse
from jobs.models import Job
from jobs.permissions import job_for
from jobs.readers.job_log import LogChoice, log_after, log_before
from jobs.statuses import JobStatus

# Lines in one event. Further ones follow as soon as the reader has taken these.
LINES_AN_EVENT = 2000


@require_safe
async def log_stream(request: HttpRequest, slug: str, job_id: int) -> HttpResponseBase:
    """`/projects/{slug}/jobs/{id}/logs/stream`."""
    try:
        PLACES.refuse_when_full()
        watch, place = await in_thread(_open, request, slug, job_id)
    except Exception as error:  # noqa: BLE001 - every answer here is a problem document
        return problem_of(error)
    return sse.response(events_of(watch, place))


def _open(request: HttpRequest, slug: str, job_id: int) -> tuple[LogWatch, Place]:
    query = checked(StreamQuery, request.GET)
    choice = choice_of(query)

    def access() -> Job:
        return job_for(authenticate_again(request), slug, job_id)

    actor = authenticate(request)
    place = PLACES.take(actor.user.pk)
    job = job_for(actor, slug, job_id)
    if last_id := request.headers.get("Last-Event-ID", ""):
        after = parse(last_id)
    elif query["tail"] is not None:
        after = _before_the_last(job, query["tail"], choice)
    else:
        after = query["after"] or START
    return LogWatch(Access(access), job, after, choice), place


def _before_the_last(job: Job, count: int, choice: LogChoice) -> Cursor:
    page = log_before(job.pk, None, max(1, count), choice)
    if count == 0 or not page.lines:
        return page.last
    first = page.lines[0].cursor
    return Cursor(first.attempt, first.line - 1)


class LogWatch(Watch):
    """Where one reader of a job stands."""

    def __init__(self, access: Access, job: Job, after: Cursor, choice: LogChoice) -> None:
        self._access = access
        self._job_id = job.pk
        self._topics = {job_topic(job.pk)}
        self._after = after
        self._choice = choice
        self._told: str | None = None  # the status that the reader knows
        self._is_behind = False  # there are lines that nobody will hint at again

    def topics(self) -> set[str]:
        """The job's, and those of its attempts' logs."""
        return self._topics

    def look(self, hinted: set[str]) -> Look:
        """Lines, then what changed, then the end: in this order nothing is missed."""
        self._access.confirm()
        news: list[bytes] = []
        status = self._told
        # A hint about lines alone is by far the most frequent one.
        if status is None or not hinted or job_topic(self._job_id) in hinted:
            status = self._status()
            if hinted or status != self._told:
                news = [_event("job", {"id": self._job_id, "status": status})]
        self._told = status
        found = _read(self._job_id, self._choice, self._after)
        self.take(found, is_behind=found.is_cut)
        if found.is_cut:
            return Look(found.events + news, is_behind=True)
        is_over = JobStatus(status).is_final
        if is_over:
            news.append(_event("end", {"id": self._job_id, "status": status}))
        return Look(found.events + news, is_over=is_over)

    def common(self, hinted: set[str]) -> Common[News] | None:
        """The next lines, where only lines can be new."""
        if self._told is None or job_topic(self._job_id) in hinted or self._access.is_due:
            return None
        if not hinted and not self._is_behind:
            return None
        where = (self._job_id, self._choice, self._after)
        return Common(where, partial(_read, *where))

    def take(self, news: News, *, is_behind: bool) -> None:
        """Go on behind these lines."""
        self._after, self._is_behind = max(self._after, news.place), is_behind

    def _status(self) -> str:
        job = Job.objects.filter(pk=self._job_id).first()
        if job is None:
            raise NotFoundError
        self._topics |= {log_topic(pk) for _, pk in self._choice.attempts(self._job_id)}
        return job.status


def _read(job_id: int, choice: LogChoice, after: Cursor) -> News:
    """The lines after `after`, as the one event that tells of them."""
    page = log_after(job_id, after, LINES_AN_EVENT, choice)
    events = []
    if page.lines:
        rows = [line_row(line) for line in page.lines]
        events = [_event("line", rows, str(page.lines[-1].cursor))]
    return News(events, page.last, page.is_cut)


def _event(name: str, data: Any, event_id: str = "") -> bytes:
    return sse.event(name, json.dumps(data, separators=(",", ":")), event_id)
