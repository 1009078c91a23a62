"""Requests under another host name get the name of the setting that lacks it."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.integration.api.conftest import assert_problem

# Closing an answer looks at the connection, if there is one.
pytestmark = pytest.mark.django_db


def page(path: str) -> str:
    answer = Client(headers={"host": "portal.lan"}).get(path)
    assert answer.status_code == 400
    assert answer["Content-Type"].startswith("text/html")
    return answer.content.decode()


def test_the_page_names_the_setting():
    for path in ("/", "/rl", "/healthz", "/nothing/here"):
        assert "ALLOWED_HOSTS" in page(path)


def test_rest_answers_with_a_problem():
    for path in ("/api/v1/me", "/api/v1/nothing"):
        answer = Client(headers={"host": "portal.lan"}).get(path)
        problem = assert_problem(answer, 400, "host_not_allowed")
        assert "ALLOWED_HOSTS" in problem["detail"]
