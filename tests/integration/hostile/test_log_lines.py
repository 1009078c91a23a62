"""Input of strangers reaches the portal's log as one line of JSON, and acts on no terminal."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from django.test import Client

from monarch_portal.logging_config import JsonFormatter
from tests.factories import make_user

EVIL = '\n{"level": "info", "message": "forged"}\r\x1b[2J\x1b]0;title\x07\u2028\x9b31m\0'

pytestmark = pytest.mark.django_db


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Yield the log of all modules, as the portal writes it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


def test_no_user_writes_their_own_lines_into_the_log(written, settings) -> None:
    settings.MPORTAL_TRIES_PER_NAME = 1
    make_user("ada")
    visitor = Client(raise_request_exception=False)
    for _ in range(3):
        visitor.post("/sign-in", {"username": EVIL, "password": EVIL})
    visitor.get(f"/api/v1/projects/{EVIL}/jobs", {"q": EVIL})
    visitor.get("/sign-in", headers={"Host": "evil\x1b[2J", "X-Request-ID": EVIL})
    visitor.get(f"/{EVIL}", headers={"User-Agent": EVIL, "Referer": EVIL})
    logging.getLogger("jobs").warning("of a job: %s", EVIL, extra={"action": EVIL, "name_": EVIL})
    text = written.getvalue()
    assert text.isascii()
    assert not set(text) & {"\r", "\x1b", "\x07", "\0"}
    lines = text.splitlines()
    assert len(lines) >= 3
    for line in lines:
        assert json.loads(line)["message"] != "forged"


def test_an_answers_headers_hold_nothing_that_a_caller_broke_a_line_with() -> None:
    odd = "a\r\nX-Evil: 1"
    for path in ("/sign-in", "/api/v1/me", "/api/v1/nothing"):
        answer = Client().get(path, {"next": odd}, headers={"X-Request-ID": odd, "Origin": odd})
        assert "X-Evil" not in answer.headers
        assert "\n" not in answer["X-Request-ID"]
