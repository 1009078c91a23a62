"""Refuses request bodies that are too large before they are on disk.

Django reads a whole body into a temporary file before any view or sign-in is asked, so this
stands in front of it, as ASGI.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings

Scope = dict[str, Any]
Event = Mapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 4 * 1024 * 1024
_UPLOADS = "/uploads"


class BodyLimit:
    """An ASGI application that answers 413 in place of `application`."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        request = _Request(scope, receive, send)
        if not request.is_too_large:
            await self._application(scope, request.receive, request.send)
        if request.is_too_large and not request.is_answered:
            await request.drain()
            await _refuse(send)


class _Request:
    """Counts what one request brings."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._left = _most_bytes(scope["path"])
        self.is_too_large = _announced(scope) > self._left
        self.is_answered = False
        self._more = True

    async def receive(self) -> Event:
        """The next piece of the body; a caller who has gone, once it is too much."""
        event = await self._next()
        return {"type": "http.disconnect"} if self.is_too_large else event

    async def _next(self) -> Event:
        event = await self._receive()
        self._more = event["type"] == "http.request" and event["more_body"]
        if event["type"] == "http.request":
            self._left -= len(event["body"])
            self.is_too_large = self.is_too_large or self._left < 0
        return event

    async def drain(self) -> None:
        """Let the rest go by unkept: who is cut off while sending never reads the answer."""
        while self._more:
            await self._next()

    async def send(self, event: Event) -> None:
        """Part of the answer."""
        self.is_answered = True
        await self._send(event)


def _most_bytes(path: str) -> int:
    if path.startswith("/api/") and path.endswith(_UPLOADS):
        # One more than an upload may have, so that the action says so in its own words.
        return int(settings.MPORTAL_UPLOAD_MAX_BYTES) + 1
    return MOST_BYTES


def _announced(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


async def _refuse(send: Send) -> None:
    body = {
        "type": "urn:mportal:problem:body_too_large",
        "title": HTTPStatus.REQUEST_ENTITY_TOO_LARGE.phrase,
        "status": 413,
        "code": "body_too_large",
        "detail": "The request body is too large.",
    }
    headers = [(b"content-type", b"application/problem+json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    content = json.dumps(body).encode()
    await send({"type": "http.response.body", "body": content, "more_body": False})
