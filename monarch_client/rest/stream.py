"""Following a job: its log and its changes, live, through lost connections and portal restarts.

Each line comes exactly once and in order: the stream is resumed at the last line seen, and lines
that come again are dropped. Where no stream gets through, the log is polled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from monarch_client import wire
from monarch_client.errors import RefusedError, UnexpectedAnswerError, UnreachableError
from monarch_client.rest.client import PortalClient, given
from monarch_client.rest.connection import pauses
from monarch_client.rest.decoding import decode
from monarch_client.rest.server_sent import ServerSentEvent, read_events
from monarch_client.runner.base.retry import Retry

# The portal sends a beat every 15 s: silence for longer means a dead connection.
SILENCE_S = 40.0
POLL_S = 1.0
POLL_LINES = 1000
# After so many streams in a row that brought nothing, a proxy in between seems to swallow them.
BARREN_STREAMS = 3
STREAM_TYPE = "text/event-stream"
# The portal serves as many streams as it can, and no more.
NO_PLACE = frozenset({429, 503})


@dataclass(frozen=True)
class NewLines:
    """Further lines of the log."""

    lines: list[wire.logs.LogLine]


@dataclass(frozen=True)
class Changed:
    """A change of the job, which must be read again."""


@dataclass(frozen=True)
class Disconnected:
    """The portal is away; following goes on when it is back."""

    reason: str


FollowEvent = NewLines | Changed | Disconnected


@dataclass
class Follower:
    """A follower of one job: all of its log, or from its last `tail` lines on.

    `choice` narrows the log to an attempt, a rank, a stream.
    """

    client: PortalClient
    project: str
    job_id: int
    tail: int | None = None
    choice: Mapping[str, Any] = field(default_factory=dict)
    # The cursor of the last line seen.
    after: str = field(default="", init=False)
    _ended: bool = field(default=False, init=False)
    _barren: int = field(default=0, init=False)
    _retry: Retry = field(default_factory=pauses, init=False)

    def events(self) -> Iterator[FollowEvent]:
        """Yield all events until the job has ended and its last line was yielded."""
        while not self._ended:
            streaming = self._barren < BARREN_STREAMS
            try:
                yield from self._stream() if streaming else self._poll()
            except (httpx.TransportError, UnreachableError, UnexpectedAnswerError) as error:
                yield Disconnected(str(error) or type(error).__name__)
            except RefusedError as error:
                if error.status not in NO_PLACE:
                    raise
                # No more streams just now: after some tries the log is polled instead.
                self._barren += 1
                yield Disconnected(error.message)
            if not self._ended:
                self.client.connection.sleep(self._retry.next_pause_s() if streaming else POLL_S)

    def _stream(self) -> Iterator[FollowEvent]:
        query = httpx.QueryParams(given({"tail": self.tail, **self.choice}))
        path = f"/projects/{self.project}/jobs/{self.job_id}/logs/stream?{query}"
        headers = {"Accept": STREAM_TYPE}
        if self.after:
            headers["Last-Event-ID"] = self.after
        connection = self.client.connection
        with connection.stream(path, headers=headers, read_timeout_s=SILENCE_S) as response:
            # Barren until it brings something, in whatever way it breaks before that.
            self._barren += 1
            if not response.headers.get("Content-Type", "").startswith(STREAM_TYPE):
                raise UnexpectedAnswerError("Something in between answered for the portal.")
            for event in read_events(self._fruitful(response.iter_bytes())):
                yield from self._take(event)

    def _fruitful(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._barren = 0
            self._retry.succeeded()
            yield chunk

    def _take(self, event: ServerSentEvent) -> Iterator[FollowEvent]:
        if event.event == "line":
            yield from self._new(decode(wire.logs.LogLine, row) for row in json.loads(event.data))
        elif event.event in {"job", "end"}:
            self._ended = event.event == "end"
            yield Changed()

    def _poll(self) -> Iterator[FollowEvent]:
        # The job first: a line that came before the job was over is then in what is read next.
        job = self.client.job(self.project, self.job_id)
        yield Changed()
        if self.tail and not self.after:
            yield from self._new(self._logs(before="end", limit=self.tail).results)
        after: str | None = self.after
        while after is not None:
            page = self._logs(after=after, limit=POLL_LINES)
            yield from self._new(page.results)
            after = page.next
        self._ended = job.is_final

    def _logs(self, **bounds: Any) -> wire.page.Page[wire.logs.LogLine]:
        return self.client.logs(self.project, self.job_id, **bounds, **self.choice)

    def _new(self, lines: Iterable[wire.logs.LogLine]) -> Iterator[FollowEvent]:
        seen = parse_cursor(self.after)
        fresh = [line for line in lines if line.position > seen]
        if fresh:
            attempt, number = fresh[-1].position
            self.after = f"{attempt}:{number}"
            yield NewLines(fresh)


def parse_cursor(cursor: str) -> tuple[int, int]:
    """Return the position of a cursor; before the first line when it is empty."""
    attempt, _, line = cursor.partition(":")
    return (int(attempt), int(line)) if cursor else (0, 0)
