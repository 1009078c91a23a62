"""Server-sent events: framing, and the response that carries them.

Heartbeats are events of their own: proxies see traffic, a browser that is gone is found out, and a
page, which never sees comments, can tell a silent connection from a quiet job.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from django.http import StreamingHttpResponse

HEARTBEAT_S = 15.0
# How long a browser waits before it connects again.
RETRY_MS = 1000
CONTENT_TYPE = "text/event-stream"
_LINE_END = re.compile(r"\r\n|\r|\n")
_HEADERS = {
    # A proxy that buffers or compresses a stream holds it back.
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}


def event(name: str, data: str, event_id: str = "") -> bytes:
    """One event. `event_id` is what the browser sends as Last-Event-ID when it comes back."""
    fields = [f"event: {name}"]
    if event_id:
        fields.append(f"id: {event_id}")
    # However many lines `data` has: an empty one ends the event.
    fields += [f"data: {line}" for line in _LINE_END.split(data)]
    return "\n".join([*fields, "", ""]).encode()


def beat() -> bytes:
    """A sign of life; it has no id, so that readers stay where they are."""
    return event("beat", "")


def opening() -> bytes:
    """The first bytes of every stream: how soon to come back when it breaks."""
    return f"retry: {RETRY_MS}\n\n".encode()


def response(events: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """The response whose body is `events`. When the reader goes, the iterator is closed."""
    return StreamingHttpResponse(events, content_type=CONTENT_TYPE, headers=_HEADERS)
