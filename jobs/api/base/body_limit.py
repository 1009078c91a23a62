"""Refuses request bodies that are too large, too slow or a stranger's before they are on disk.

Django reads a whole body into a temporary file before any view or sign-in is asked, so this
is mounted in front of it, as ASGI. It bounds how long an answer may wait for its reader as well.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.conf import settings

from jobs.actions.projects.keep_archive import too_large
from jobs.api.base.known_callers import is_known, is_upload
from jobs.errors import PortalError
from jobs.ground.outages import is_database_away

Scope = dict[str, Any]
Event = Mapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 4 * 1024 * 1024
# The size that any caller may send; a larger body needs an authenticated one.
STRANGERS_BYTES = 64 * 1024
# A body may take so long, and a second more for each so many bytes that have come.
PATIENCE_S = 30.0
SLOWEST_BYTES_S = 8 * 1024
# How long the rest of a refused body is taken, and how long an answer waits for its reader.
DRAIN_S = 10.0
READER_S = 60.0
# The key of the scope with the monotonic time at which the head of the request arrived.
CAME_AT = "mportal.came_at"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer in place of the application's."""

    status: int
    code: str
    detail: str
    header: tuple[bytes, bytes] | None = None


TOO_LARGE = Refusal(413, "body_too_large", "The request body is too large.")
TOO_SLOW = Refusal(408, "body_too_slow", "The request body came too slowly.")
UNKNOWN = Refusal(
    401,
    "not_authenticated",
    f"Sign in before sending more than {STRANGERS_BYTES // 1024} KiB.",
    (b"www-authenticate", b'Bearer realm="mportal"'),
)
AWAY = Refusal(503, "portal_busy", "The portal cannot check who you are.", (b"retry-after", b"5"))


class BodyLimit:
    """An ASGI application that answers in place of `application` where a body may not be."""

    def __init__(
        self, application: Application, knows: Callable[[Scope], Awaitable[bool]] = is_known
    ) -> None:
        self._application = application
        self._knows = knows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        scope = {**scope, CAME_AT: time.monotonic()}
        request = _Request(scope, receive, send, self._knows)
        await request.judge(_announced(scope))
        if request.refusal is None:
            try:
                await self._application(scope, request.receive, request.send)
            finally:
                request.end()
        if request.refusal is not None and not request.is_answered:
            await request.drain()
            await refuse(send, request.refusal)


class _Request:
    """A counter of what one request sends, and how fast."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, knows: Callable[[Scope], Awaitable[bool]]
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._knows = knows
        self._began = time.monotonic()
        self._path = scope["path"].removeprefix(scope.get("root_path", ""))
        self._most = _most_bytes(self._path)
        self._free = STRANGERS_BYTES
        self._size = 0
        self._more = True
        self.refusal: Refusal | None = None
        self.is_answered = False
        # Who sends since when, and what looks whether that takes too long: one timer for all that
        # is sent, because a live stream sends often.
        self._sender: asyncio.Task[Any] | None = None
        self._sends_since = 0.0
        self._is_left = False
        self._timer: asyncio.TimerHandle | None = None

    async def judge(self, size: int) -> None:
        """Set `refusal` unless a body of `size` bytes may come from this caller."""
        if self.refusal is not None:
            return
        if size > self._most:
            self.refusal = _too_large(self._path)
        elif size > self._free:
            self.refusal = await self._refusal_of_a_stranger()
            self._free = self._most

    async def _refusal_of_a_stranger(self) -> Refusal | None:
        try:
            return None if await self._knows(self._scope) else UNKNOWN
        except PortalError as error:
            return Refusal(error.http_status, error.code, error.message)
        except Exception as error:
            if not is_database_away(error):
                raise
            return AWAY

    async def receive(self) -> Event:
        """Return the next event of the body; a disconnect once the body is refused."""
        event = await self._next()
        await self.judge(self._size)
        return {"type": "http.disconnect"} if self.refusal else event

    async def _next(self) -> Event:
        if not self._more:
            return await self._receive()
        due = self._began + PATIENCE_S + self._size / SLOWEST_BYTES_S
        try:
            # Unlike wait_for, this never loses a cancellation.
            async with asyncio.timeout(max(0.0, due - time.monotonic())):
                event = await self._receive()
        except TimeoutError:
            self.refusal = self.refusal or TOO_SLOW
            self._more = False
            return {"type": "http.disconnect"}
        self._more = event["type"] == "http.request" and event["more_body"]
        self._size += len(event.get("body", b""))
        return event

    async def drain(self) -> None:
        """Let the rest go by unkept: who is cut off while sending never reads the answer."""
        if _expects_continue(self._scope) and not self._size:
            return
        until = time.monotonic() + DRAIN_S
        while self._more and time.monotonic() < until:
            await self._next()

    async def send(self, event: Event) -> None:
        """Send a part of the answer. A reader that takes none for long counts as disconnected."""
        self.is_answered = True
        self._sender, self._sends_since = asyncio.current_task(), time.monotonic()
        if self._timer is None:
            self._look_in(READER_S)
        try:
            await self._send(event)
        except asyncio.CancelledError:
            if self._is_left and self._sender is not None:
                self._sender.uncancel()
            raise
        finally:
            self._sender = None

    def _look_in(self, delay_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._sender is None:
            return
        rest_s = self._sends_since + READER_S - time.monotonic()
        if rest_s > 0:
            self._look_in(rest_s)
        else:
            self._is_left = True
            self._sender.cancel()

    def end(self) -> None:
        """Stop the timer: nothing more is sent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _most_bytes(path: str) -> int:
    if is_upload(path):
        # One more than an upload may have, so that the action refuses it with its own message.
        return int(settings.MPORTAL_UPLOAD_MAX_BYTES) + 1
    return MOST_BYTES


def _too_large(path: str) -> Refusal:
    if not is_upload(path):
        return TOO_LARGE
    error = too_large(settings.MPORTAL_UPLOAD_MAX_BYTES)
    return Refusal(error.http_status, error.code, error.message)


def _header(scope: Scope, wanted: bytes) -> bytes:
    return next((value for name, value in scope["headers"] if name == wanted), b"")


def _announced(scope: Scope) -> int:
    length = _header(scope, b"content-length")
    return int(length) if length.isdigit() else 0


def _expects_continue(scope: Scope) -> bool:
    return _header(scope, b"expect").lower() == b"100-continue"


async def refuse(send: Send, refusal: Refusal) -> None:
    """Send `refusal` as the whole answer."""
    body = {
        "type": f"urn:mportal:problem:{refusal.code}",
        "title": HTTPStatus(refusal.status).phrase,
        "status": refusal.status,
        "code": refusal.code,
        "detail": refusal.detail,
    }
    headers = [(b"content-type", b"application/problem+json"), (b"connection", b"close")]
    headers += [refusal.header] if refusal.header else []
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    content = json.dumps(body).encode()
    await send({"type": "http.response.body", "body": content, "more_body": False})
