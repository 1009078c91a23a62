"""Bodies that are too large never reach Django, which would write them to disk."""

from __future__ import annotations

import asyncio
import json

import pytest
from django.db import InterfaceError, OperationalError

from jobs.api.base import body_limit
from jobs.api.base.body_limit import MOST_BYTES, BodyLimit
from jobs.errors import AttemptClosedError

PIECE = 1024 * 1024
UPLOADS = "/api/v1/projects/rl/uploads"


class Exchange:
    """One request through the limit; `seen` is what reached the application behind it."""

    def __init__(self, path="/api/v1/tokens", pieces=1, announced=None, known=True, headers=()):
        self.seen = 0
        self.answer = []
        self.requested = 0
        self.known = known
        self.left = pieces
        headers = [(name.encode(), value.encode()) for name, value in headers]
        headers += [] if announced is None else [(b"content-length", str(announced).encode())]
        scope = {"type": "http", "path": path, "headers": headers}
        asyncio.run(BodyLimit(self.application, self.knows)(scope, self.receive, self.send))

    async def knows(self, scope):
        self.requested += 1
        if isinstance(self.known, Exception):
            raise self.known
        return self.known

    async def application(self, scope, receive, send):
        while (event := await receive())["type"] == "http.request":
            self.seen += len(event["body"])
            if not event["more_body"]:
                await send({"type": "http.response.start", "status": 200})
                return

    async def receive(self):
        self.left -= 1
        await self.pause()
        return {"type": "http.request", "body": b"x" * PIECE, "more_body": self.left > 0}

    async def pause(self):
        """Wait before each piece."""

    async def send(self, event):
        self.answer.append(event)

    @property
    def status(self):
        return self.answer[0]["status"]


def test_a_body_within_the_limit_passes():
    exchange = Exchange(pieces=4)
    assert (exchange.status, exchange.seen) == (200, MOST_BYTES)


def test_a_body_that_is_announced_too_large_is_refused_unread():
    exchange = Exchange(pieces=6, announced=6 * PIECE)
    assert (exchange.status, exchange.seen) == (413, 0)
    assert json.loads(exchange.answer[1]["body"])["code"] == "body_too_large"


def test_the_refusal_of_a_too_large_upload_names_the_limit_and_what_to_do(settings):
    settings.MPORTAL_UPLOAD_MAX_BYTES = 3 * PIECE
    exchange = Exchange(pieces=6, announced=6 * PIECE, path="/api/v1/projects/rl/uploads")
    problem = json.loads(exchange.answer[1]["body"])
    assert (problem["status"], problem["code"]) == (413, "upload_too_large")
    assert f"{3 * PIECE // 1024**2} MiB" in problem["detail"]
    assert ".mportalignore" in problem["detail"]


def test_a_body_that_grows_too_large_is_cut_off():
    exchange = Exchange(pieces=9)
    assert (exchange.status, exchange.seen) == (413, MOST_BYTES)


@pytest.mark.parametrize("announced", [None, 9 * PIECE])
def test_the_rest_of_a_refused_body_is_taken_so_that_the_answer_is_read(announced):
    assert Exchange(pieces=9, announced=announced).left == 0


def test_a_length_that_is_none_is_not_trusted():
    assert Exchange(pieces=9, announced=-1).status == 413


def test_an_upload_may_be_as_large_as_the_portal_allows(settings):
    settings.MPORTAL_UPLOAD_MAX_BYTES = 8 * PIECE
    assert Exchange(UPLOADS, pieces=8).status == 200
    assert Exchange(UPLOADS, pieces=9).status == 413


def test_only_uploads_may(settings):
    settings.MPORTAL_UPLOAD_MAX_BYTES = 8 * PIECE
    assert Exchange("/sign-in/uploads", pieces=8).status == 413


def test_what_is_no_request_passes():
    passed = []

    async def application(scope, receive, send):
        passed.append(scope["type"])

    asyncio.run(BodyLimit(application)({"type": "lifespan"}, None, None))
    assert passed == ["lifespan"]


@pytest.mark.parametrize("announced", [None, 2 * PIECE])
def test_more_than_a_little_of_a_stranger_is_refused_before_it_is_kept(announced):
    exchange = Exchange(pieces=2, announced=announced, known=False)
    assert (exchange.status, exchange.seen, exchange.requested) == (401, 0, 1)
    assert json.loads(exchange.answer[1]["body"])["code"] == "not_authenticated"
    assert (b"www-authenticate", b'Bearer realm="mportal"') in exchange.answer[0]["headers"]


def test_a_small_body_needs_no_early_authentication(monkeypatch):
    monkeypatch.setattr(body_limit, "STRANGERS_BYTES", PIECE)
    exchange = Exchange(pieces=1, known=False)
    assert (exchange.status, exchange.requested) == (200, 0)


def test_the_user_is_looked_up_once_a_request():
    exchange = Exchange(pieces=4, announced=4 * PIECE)
    assert (exchange.status, exchange.requested) == (200, 1)


@pytest.mark.parametrize("lost", [OperationalError, InterfaceError])
def test_while_the_database_is_away_no_user_is_taken_for_a_stranger(lost):
    assert Exchange(pieces=2, known=lost()).status == 503


def test_a_refused_sender_learns_why():
    exchange = Exchange(pieces=2, known=AttemptClosedError())
    assert (exchange.status, exchange.seen) == (410, 0)
    assert json.loads(exchange.answer[1]["body"])["code"] == "attempt_closed"


def test_a_client_that_expects_100_continue_is_refused_before_sending_its_body():
    exchange = Exchange(announced=2 * PIECE, known=False, headers=[("expect", "100-continue")])
    assert (exchange.status, exchange.left) == (401, 1)


class Trickle(Exchange):
    """A client that sends byte by byte, for ever."""

    async def receive(self):
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}


def test_a_body_that_trickles_is_cut_off(monkeypatch):
    monkeypatch.setattr(body_limit, "PATIENCE_S", 0.1)
    exchange = Trickle()
    assert exchange.status == 408
    assert json.loads(exchange.answer[1]["body"])["code"] == "body_too_slow"
    assert exchange.seen < 50


class Silence(Exchange):
    """A client that announces a body and sends nothing."""

    async def pause(self):
        await asyncio.sleep(60)


def test_a_body_that_never_comes_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(body_limit, "PATIENCE_S", 0.1)
    assert Silence(announced=10).status == 408


class Deaf(Exchange):
    """A client that reads nothing of the answer."""

    async def send(self, event):
        await asyncio.sleep(60)


def test_a_reader_who_takes_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(body_limit, "READER_S", 0.1)
    with pytest.raises(asyncio.CancelledError):
        Deaf()


def test_an_endless_body_that_was_refused_is_not_taken_for_ever(monkeypatch):
    monkeypatch.setattr(body_limit, "DRAIN_S", 0.1)
    exchange = Trickle(announced=9 * PIECE)
    assert exchange.status == 413
