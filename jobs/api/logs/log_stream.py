"""A job live: its log and its changes as server-sent events, resumed exactly where they broke.

Events: `line` (a JSON list of lines; the id is the cursor of the last), `job` (it changed: read it
again), `end` (the job is over and every line is out; nothing follows).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from jobs.api.base.authentication import authenticate, authenticate_again
from jobs.api.base.errors import problem_of
from jobs.api.base.methods import only
from jobs.api.logs.log_inputs import StreamQuery, checked, choice_of
from jobs.live import sse
from jobs.live.access import Access
from jobs.live.channel import job_topic, log_topic
from jobs.live.looking import Look, News, Watch, events_of
from jobs.live.packing import Piece
from jobs.live.shared_reads import Common
from jobs.live.stream_slots import STREAM_SLOTS, StreamSlot
from jobs.logs.cursor import START, Cursor, parse
from jobs.models import Job
from jobs.permissions import job_for
from jobs.readers.job_log import LogChoice, log_before, log_of_attempts, row_of_job
from jobs.statuses import JobStatus

# Lines in one event. Further ones follow as soon as the reader has taken these.
LINES_AN_EVENT = 2000


@only("GET")
def log_stream(request: HttpRequest, slug: str, job_id: int) -> HttpResponseBase:
    """Answer `/projects/{slug}/jobs/{id}/logs/stream`."""
    try:
        STREAM_SLOTS.refuse_when_full()
        watch, slot = _open(request, slug, job_id)
    except Exception as error:  # noqa: BLE001 - every answer here is a problem document
        return problem_of(error)
    return sse.response(request, events_of(watch, slot))


def _open(request: HttpRequest, slug: str, job_id: int) -> tuple[LogWatch, StreamSlot]:
    query = checked(StreamQuery, request.GET)
    choice = choice_of(query)

    def access() -> Job:
        return job_for(authenticate_again(request, drivers_too=True), slug, job_id)

    actor = authenticate(request, drivers_too=True)
    slot = STREAM_SLOTS.take(actor.user.pk)
    job = job_for(actor, slug, job_id)
    if last_id := request.headers.get("Last-Event-ID", ""):
        after = parse(last_id)
    elif query["tail"] is not None:
        after = _before_the_last(job, query["tail"], choice)
    else:
        after = query["after"] or START
    by = (actor.token and actor.token.pk, actor.driver and actor.driver.pk)
    whose = (actor.user.pk, *by, request.session.session_key)
    return LogWatch(Access(access, (whose, slug, job_id), actor.user.pk), job, after, choice), slot


def _before_the_last(job: Job, count: int, choice: LogChoice) -> Cursor:
    page = log_before(job.pk, None, max(1, count), choice)
    if count == 0 or not page.lines:
        return page.last
    first = page.lines[0].cursor
    return Cursor(first.attempt, first.line - 1)


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of one read: the job's status, read before the lines, and where they end."""

    status: str
    topics: set[str]
    last: Cursor
    is_cut: bool
    # That the job has changed, and that it is over, for readers that do not know yet.
    changed: Piece
    over: Piece


class LogWatch(Watch):
    """The position of one reader in a job's log."""

    def __init__(self, access: Access, job: Job, after: Cursor, choice: LogChoice) -> None:
        super().__init__(access)
        self._job_id = job.pk
        self._topics = {job_topic(job.pk)}
        self._after = after
        self._choice = choice
        self._known_status: str | None = None  # the status that the reader knows
        self._is_changed = False  # by a hint, since the reader's last event

    def topics(self) -> set[str]:
        """Return the topics of the job and of its attempts' logs."""
        return self._topics

    def wants(self, hinted: set[str]) -> Common[News]:
        """Return the read of what comes after the last line that was sent."""
        self._is_changed |= job_topic(self._job_id) in hinted
        where = (self._job_id, self._choice, self._after)
        return Common(where, partial(_read, *where))

    def take(self, news: News, *, is_newest: bool) -> Look:
        """Return lines, then what changed, then the end: in this order nothing is missed."""
        found: _Found = news.found
        self._after, self._topics = max(self._after, found.last), self._topics | found.topics
        if not is_newest:
            return Look(news.events, is_behind=True)
        events = news.events
        if self._is_changed or found.status != self._known_status:
            events = [*events, found.changed]
        self._known_status, self._is_changed = found.status, False
        if found.is_cut:
            return Look(events, is_behind=True)
        if JobStatus(found.status).is_final:
            return Look([*events, found.over], is_over=True)
        return Look(events)


def _read(job_id: int, choice: LogChoice, after: Cursor) -> News:
    """Return the lines after `after`, as the one event that carries them."""
    status, attempts = choice.state(job_id)
    page = log_of_attempts(attempts, after, LINES_AN_EVENT, choice.wanted, row_of_job)
    events = []
    if page.lines:
        last = page.lines[-1]
        event = sse.json_event("line", page.lines, str(Cursor(last["attempt"], last["line"])))
        # Most readers take it so; here in a thread it holds no other stream up.
        _ = event.packed
        events = [event]
    topics = {log_topic(pk) for _, pk in attempts}
    state = {"id": job_id, "status": status}
    changed, over = sse.json_event("job", state), sse.json_event("end", state)
    return News(events, _Found(status, topics, page.last, page.is_cut, changed, over))
