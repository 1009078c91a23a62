"""Server-sent events: framing, and the response that carries them.

Heartbeats are events of their own: proxies see traffic, a closed browser is detected, and a
page, which never sees comments, can distinguish a silent connection from a quiet job.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.cache import patch_vary_headers

from jobs.live.packing import Packed, Piece, takes_deflate

HEARTBEAT_S = 15.0
# How long a browser waits before it connects again.
RETRY_MS = 1000
CONTENT_TYPE = "text/event-stream"
_LINE_END = re.compile(r"\r\n|\r|\n")
_HEADERS = {
    # A proxy that buffers or compresses a stream holds it back.
    "Cache-Control": "no-cache, no-store, no-transform",
    "X-Accel-Buffering": "no",
}


def event(name: str, data: str, event_id: str = "") -> Piece:
    """Format one event. A browser that reconnects sends `event_id` as Last-Event-ID."""
    # However many lines `data` has: an empty one ends the event.
    return _event(name, event_id, [line.encode() for line in _LINE_END.split(data)])


def json_event(name: str, data: Any, event_id: str = "") -> Piece:
    """Format one event with `data` as JSON, which is one line."""
    return _event(name, event_id, [msgspec.json.encode(data)])


def _event(name: str, event_id: str, data: list[bytes]) -> Piece:
    fields = [f"event: {name}".encode()]
    if event_id:
        fields.append(f"id: {event_id}".encode())
    fields += [b"data: " + line for line in data]
    return Piece(b"\n".join([*fields, b"", b""]))


# A sign of life; it has no id, so that readers stay where they are.
BEAT = event("beat", "")
# The first bytes of every stream: how soon to come back when it breaks.
OPENING = Piece(f"retry: {RETRY_MS}\n\n".encode())


class EventStream(StreamingHttpResponse):
    """A response whose parts go out as they are: Django hands each of them on three times."""

    def __init__(self, body: AsyncGenerator[bytes]) -> None:
        super().__init__(body, content_type=CONTENT_TYPE, headers=_HEADERS)

    def __aiter__(self) -> AsyncGenerator[bytes]:
        parts: AsyncGenerator[bytes] = self._iterator  # type: ignore[attr-defined]  # not in stubs
        return parts


def response(request: HttpRequest, events: AsyncGenerator[Piece]) -> StreamingHttpResponse:
    """Build the response with the body `events`. The generator is closed when the reader leaves."""
    is_packed = takes_deflate(request.headers.get("Accept-Encoding", ""))
    answer = EventStream(_packed(events) if is_packed else _plain(events))
    patch_vary_headers(answer, ["Accept-Encoding"])
    if is_packed:
        answer.headers["Content-Encoding"] = "deflate"
    return answer


async def _plain(events: AsyncGenerator[Piece]) -> AsyncGenerator[bytes]:
    async with aclosing(events):
        async for each in events:
            yield each.raw


async def _packed(events: AsyncGenerator[Piece]) -> AsyncGenerator[bytes]:
    stream = Packed()
    async with aclosing(events):
        async for each in events:
            yield stream.add(each)
        yield stream.end()
