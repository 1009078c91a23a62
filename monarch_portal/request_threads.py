"""The threads in which requests run what is synchronous, kept from one request to the next.

Django gives each request a thread of its own, and asgiref a second one to wait for its end. The
event loop stands still while a thread starts, and longer the busier the others are; a live stream
would keep its thread for hours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.core.handlers.asgi import ASGIHandler
from django.db import connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase, StreamingHttpResponse

# Threads that wait for a request. So many are seldom at work at once; further ones end after it.
MOST_IDLE = 32


class KeptThreads:
    """Threads without work. Any thread may lend and take back."""

    def __init__(self) -> None:
        # The one that was used last first: the others are left in peace.
        self._idle: deque[ThreadPoolExecutor] = deque()

    @property
    def count(self) -> int:
        """How many wait."""
        return len(self._idle)

    def take(self) -> ThreadPoolExecutor:
        """One that nobody else has: an executor of one thread."""
        try:
            return self._idle.pop()
        except IndexError:
            return ThreadPoolExecutor(max_workers=1, thread_name_prefix="request")

    def give_back(self, thread: ThreadPoolExecutor) -> None:
        """Whoever had it calls it no more, and what it was called with is done."""
        if len(self._idle) < MOST_IDLE:
            self._idle.append(thread)
        else:
            thread.shutdown(wait=False)


class RequestThread(Executor):
    """One request's thread: taken with its first call, until it is let go."""

    def __init__(self, kept: KeptThreads) -> None:
        self._kept = kept
        self._thread: ThreadPoolExecutor | None = None

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Call it, after all that was submitted before."""
        if self._thread is None:
            self._thread = self._kept.take()
        return self._thread.submit(call, *arguments, **named)

    def let_go(self) -> None:
        """Give the thread back, once it has done all; the next call takes another.

        Of a request that was cut off a call may still run. What fails while it is answered leaves
        its database connections open: they are closed here.
        """
        thread, self._thread = self._thread, None
        if thread is not None:
            last = thread.submit(connections.close_all)
            last.add_done_callback(lambda _: self._kept.give_back(thread))


_thread_of_request: ContextVar[RequestThread] = ContextVar("thread_of_request")


class RequestHandler(ASGIHandler):
    """Django's application, with threads that are kept."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = KeptThreads()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is spoken here, not {scope['type']}")
        thread = RequestThread(self._kept)
        _thread_of_request.set(thread)
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self.handle(scope, receive, send)
        finally:
            thread.let_go()

    async def run_get_response(self, request: HttpRequest) -> HttpResponseBase:
        """The response. A live stream does without a thread, however long it lasts."""
        response = await super().run_get_response(request)
        if isinstance(response, StreamingHttpResponse) and response.is_async:
            _thread_of_request.get().let_go()
        return response
