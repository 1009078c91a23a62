"""Django behind ASGI: one thread for a request, none for a live stream."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path

from jobs.audit.request_context import current_request
from monarch_portal import request_handler
from monarch_portal.request_handler import RequestHandler

idents: list[int] = []
closed: list[str] = []


def plain(request: HttpRequest) -> HttpResponse:
    idents.append(threading.get_ident())
    response = HttpResponse(request.body, status=201, headers={"X-Of": "view"})
    response.set_cookie("kind", "plain")
    return response


def in_pieces(_request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(iter([b"a", b"b"]), headers={"X-Of": "pieces"})


def broken(_request: HttpRequest) -> HttpResponse:
    raise ZeroDivisionError


def handler500(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("broken", status=500)


def live(_request: HttpRequest) -> StreamingHttpResponse:
    async def body():
        try:
            yield f"request {current_request().request_id}".encode()
            await asyncio.Event().wait()
        finally:
            closed.append("live")

    return StreamingHttpResponse(body())


def stubborn(_request: HttpRequest) -> StreamingHttpResponse:
    async def body():
        yield b"first"
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    return StreamingHttpResponse(body())


urlpatterns = [
    path("stubborn", stubborn),
    path("plain", plain),
    path("pieces", in_pieces),
    path("broken", broken),
    path("live", live),
]


@pytest.fixture
def django(settings: Any) -> RequestHandler:
    """Return a handler that serves the views of this file."""
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = [
        "jobs.api.base.request_ids.request_id_middleware",
        "monarch_portal.middleware.fixed_headers",
    ]
    idents.clear()
    closed.clear()
    return RequestHandler()


class Caller:
    """One request with what it sends and what it receives."""

    def __init__(self, *events: dict[str, Any], leaves: asyncio.Event | None = None) -> None:
        self.got: list[dict[str, Any]] = []
        self.sent = asyncio.Event()
        self._events = list(events) or [{"type": "http.request", "body": b"", "more_body": False}]
        self._leaves = leaves or asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        if self._events:
            return self._events.pop(0)
        await self._leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, event: dict[str, Any]) -> None:
        self.got.append(event)
        if event.get("body"):
            self.sent.set()

    async def ask(self, django: RequestHandler, path: str) -> None:
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b""}
        scope["headers"] = [(b"x-request-id", b"r-7")]
        await django(scope, self.receive, self.send)

    @property
    def body(self) -> bytes:
        return b"".join(each["body"] for each in self.got[1:])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.got[0]["headers"])


def requested(django: RequestHandler, path: str, *events: dict[str, Any]) -> Caller:
    caller = Caller(*events)
    asyncio.run(caller.ask(django, path))
    return caller


def test_a_view_gets_the_whole_body_and_its_answer_is_sent(django):
    pieces = [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"c", "more_body": False},
    ]
    caller = requested(django, "/plain", *pieces)
    assert (caller.got[0]["status"], caller.body) == (201, b"abc")
    assert caller.headers[b"X-Of"] == b"view"
    assert caller.headers[b"Cache-Control"] == b"no-store"
    assert caller.headers[b"Set-Cookie"].startswith(b"kind=plain")


def test_an_answer_in_pieces_is_read_in_the_thread_and_sent_as_one(django):
    caller = requested(django, "/pieces")
    assert (caller.body, caller.headers[b"X-Of"]) == (b"ab", b"pieces")


def test_who_leaves_before_the_body_is_there_reaches_no_view(django):
    caller = requested(django, "/plain", {"type": "http.disconnect"})
    assert (caller.got, idents) == ([], [])


def test_requests_one_after_the_other_share_a_thread(django):
    async def two() -> None:
        for _ in range(2):
            await Caller().ask(django, "/plain")

    asyncio.run(two())
    first, second = idents
    assert first == second != threading.get_ident()


@pytest.mark.parametrize("path", ["/plain", "/broken"])
def test_the_thread_of_a_request_is_left_without_a_database_connection(django, monkeypatch, path):
    ended: list[int] = []
    monkeypatch.setattr(
        request_handler.connections, "close_all", lambda: ended.append(threading.get_ident())
    )
    requested(django, path)
    assert len(ended) == 1
    assert ended[0] != threading.get_ident()


def test_a_live_stream_holds_no_thread_keeps_its_id_and_ends_when_its_reader_leaves(django):
    async def follow() -> list[dict[str, Any]]:
        leaves = asyncio.Event()
        caller = Caller(leaves=leaves)
        stream = asyncio.create_task(caller.ask(django, "/live"))
        await asyncio.wait_for(caller.sent.wait(), 20)
        assert django.threads_in_use == 0
        leaves.set()
        await asyncio.wait_for(stream, 20)
        return caller.got

    assert [each.get("body") for each in asyncio.run(follow())] == [None, b"request r-7"]
    assert closed == ["live"]


def test_a_stream_that_survives_its_first_cancellation_ends_all_the_same(django, monkeypatch):
    monkeypatch.setattr(request_handler, "CANCEL_AGAIN_S", 0.01)

    async def follow() -> None:
        leaves = asyncio.Event()
        caller = Caller(leaves=leaves)
        stream = asyncio.create_task(caller.ask(django, "/stubborn"))
        await asyncio.wait_for(caller.sent.wait(), 20)
        leaves.set()
        await asyncio.wait_for(stream, 20)

    asyncio.run(follow())
