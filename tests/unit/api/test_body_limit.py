"""Bodies that are too large never reach Django, which would write them to disk."""

from __future__ import annotations

import asyncio
import json

import pytest

from jobs.api.body_limit import MOST_BYTES, BodyLimit

PIECE = 1024 * 1024
UPLOADS = "/api/v1/projects/rl/uploads"


class Exchange:
    """One request through the limit; `seen` is what reached the application behind it."""

    def __init__(self, path="/api/v1/tokens", pieces=1, announced=None):
        self.seen = 0
        self.answer = []
        self.left = pieces
        headers = [] if announced is None else [(b"content-length", str(announced).encode())]
        scope = {"type": "http", "path": path, "headers": headers}
        asyncio.run(BodyLimit(self.application)(scope, self.receive, self.send))

    async def application(self, scope, receive, send):
        while (event := await receive())["type"] == "http.request":
            self.seen += len(event["body"])
            if not event["more_body"]:
                await send({"type": "http.response.start", "status": 200})
                return

    async def receive(self):
        self.left -= 1
        return {"type": "http.request", "body": b"x" * PIECE, "more_body": self.left > 0}

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
