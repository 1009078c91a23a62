"""Whoever opens the portal under another host name reads which name and which setting it is."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client

from monarch_portal.failures import LONGEST_HOST
from tests.integration.api.conftest import assert_problem

# Closing an answer looks at the connection, if there is one.
pytestmark = pytest.mark.django_db

MARKUP = "<script>alert(1)</script>"


def page(path: str = "/", host: str = "portal.lan") -> str:
    answer = Client(headers={"host": host}).get(path)
    assert answer.status_code == 400
    assert answer["Content-Type"].startswith("text/html")
    return answer.content.decode()


def test_the_page_names_the_host_and_the_setting():
    for path in ("/", "/rl", "/healthz", "/nothing/here"):
        html = page(path)
        assert "<code>portal.lan</code>" in html
        assert "ALLOWED_HOSTS" in html


def test_the_page_of_a_hostile_name_runs_nothing_and_stays_short():
    assert MARKUP not in page(host=MARKUP)
    assert "x" * LONGEST_HOST in page(host="x" * 9000)
    assert "x" * (LONGEST_HOST + 1) not in page(host="x" * 9000)


def test_rest_answers_with_a_problem():
    for path in ("/api/v1/me", "/api/v1/nothing"):
        answer = Client(headers={"host": "portal.lan"}).get(path)
        problem = assert_problem(answer, 400, "host_not_allowed")
        assert "portal.lan" in problem["detail"]
        assert "ALLOWED_HOSTS" in problem["detail"]


def test_the_event_loop_answers_alike():
    answer = async_to_sync(AsyncClient().get)("/", headers={"host": "portal.lan"})
    assert answer.status_code == 400
    assert "portal.lan" in answer.content.decode()  # after the client's own name
    assert "Content-Security-Policy" in answer.headers
