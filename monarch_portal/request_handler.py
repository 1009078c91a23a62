"""Django behind ASGI: each request runs in one thread, a live stream in none.

All of Django is synchronous here, as behind WSGI: one thread runs middleware and view and gives its
database connection back. The event loop reads bodies and sends answers, of which some never end.
Django's own handler runs middleware in the event loop instead, which hands a request to a thread
some fifteen times, and a stream would keep its thread for hours.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import IO, Any

from anyio import CapacityLimiter, to_thread
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.signals import request_started
from django.db import connections
from django.http import HttpResponse
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.urls import set_script_prefix

from jobs.audit.request_context import in_request

# Readers who lost the portal come back together. So many of their streams are opened at a time,
# the others wait without a thread.
STREAMS_OPENED_AT_ONCE = 4
_STREAM = "/stream"
CANCEL_AGAIN_S = 1.0


class RequestHandler(ASGIHandler):
    """Django's handler for ASGI, with its reading and sending and with synchronous middleware."""

    def __init__(self) -> None:
        BaseHandler.__init__(self)
        self.load_middleware()
        # The pool of database connections is the bound. A thread that is idle for long ends.
        self._threads = CapacityLimiter(math.inf)
        self._threads_of_streams = CapacityLimiter(STREAMS_OPENED_AT_ONCE)

    @property
    def threads_in_use(self) -> int:
        """Return how many requests run in a thread now."""
        return int(self._threads.borrowed_tokens + self._threads_of_streams.borrowed_tokens)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served here, not {scope['type']}")
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        is_stream = scope["path"].endswith(_STREAM)
        threads = self._threads_of_streams if is_stream else self._threads
        response = await to_thread.run_sync(
            self._respond, scope, body, limiter=threads, abandon_on_cancel=True
        )
        if response.streaming:
            await self._stream(response, receive, send)
        else:
            # Cancelled: the reader has left, or takes nothing of it.
            with suppress(asyncio.CancelledError):
                await self.send_response(response, send)

    def _respond(self, scope: Any, body: IO[bytes]) -> HttpResponseBase:
        """Run Django from its first signal to its last; an asynchronous body is left to send."""
        try:
            set_script_prefix(get_script_prefix(scope))
            request_started.send(sender=type(self), scope=scope)
            made = self.create_request(scope, body)
            response = made[1] if made[0] is None else self.get_response(made[0])
            answer = response if _is_asynchronous(response) else _whole(response)
            response.close()  # sends request_finished
            return answer
        finally:
            body.close()
            connections.close_all()

    async def _stream(self, response: HttpResponseBase, receive: Any, send: Any) -> None:
        """Send a body as it comes, until it ends or its reader leaves."""

        async def watch() -> None:
            with suppress(RequestAborted):
                await self.listen_for_disconnect(receive)
            # redis-py may go on regardless of the first, while it connects.
            while not sending.done():
                sending.cancel()
                await asyncio.wait({sending}, timeout=CANCEL_AGAIN_S)

        # The request itself is over; log lines of its stream carry its id as well.
        with in_request(response.headers.get("X-Request-ID", ""), ""):
            sending = asyncio.create_task(self.send_response(response, send))
        watching = asyncio.create_task(watch())
        try:
            with suppress(asyncio.CancelledError):
                await sending
        finally:
            watching.cancel()


def _is_asynchronous(response: HttpResponseBase) -> bool:
    return isinstance(response, StreamingHttpResponse) and response.is_async


def _whole(response: HttpResponseBase) -> HttpResponse:
    """Return the response with all of its body: WhiteNoise reads its small files piece by piece."""
    if isinstance(response, HttpResponse):
        return response
    assert isinstance(response, StreamingHttpResponse)  # noqa: S101 - there is no third kind
    whole = HttpResponse(b"".join(response), status=response.status_code, headers=response.headers)
    whole.cookies = response.cookies
    return whole
