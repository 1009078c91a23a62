"""A database that is unreachable: a message for people, a problem document for programs."""

from __future__ import annotations

import pytest
from django.db import InterfaceError, OperationalError, connection, transaction

from monarch_portal.postgresql.base import has_ended
from tests.factories import make_member, make_project
from tests.waiting import eventually

pytestmark = pytest.mark.django_db
LOST = [
    OperationalError("server closed the connection unexpectedly"),
    OperationalError("couldn't get a connection after 10.00 sec"),
    InterfaceError("connection already closed"),
]


@pytest.fixture
def visitor(client):
    """Return the client of a signed-in user, who sees what a browser would."""
    project = make_project("rl")
    client.force_login(make_member(project))
    client.raise_request_exception = False
    return client


@pytest.mark.parametrize("error", LOST, ids=str)
def test_a_page_says_so_and_when_to_come_back(visitor, monkeypatch, error):
    def lose(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("jobs.web.jobs.table_page.job_table", lose)
    page = visitor.get("/rl/jobs")
    assert page.status_code == 503
    assert page.headers["Retry-After"]
    assert "The database does not respond" in page.text
    assert str(error) not in page.text


@pytest.mark.parametrize("error", LOST, ids=str)
def test_the_api_says_so_by_a_code(visitor, monkeypatch, error):
    def lose(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("jobs.api.jobs.job_views.job_table", lose)
    answer = visitor.get("/api/v1/projects/rl/jobs")
    assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
    assert answer.headers["Retry-After"]


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_the_database_ended_says_so_as_well(visitor, monkeypatch):
    def rest_for_too_long(*_: object, **__: object) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 20")
            assert eventually(lambda: has_ended(connection.connection))
            cursor.execute("SELECT 1")

    for reader in ("jobs.web.jobs.table_page.job_table", "jobs.api.jobs.job_views.job_table"):
        monkeypatch.setattr(reader, rest_for_too_long)
    page = visitor.get("/rl/jobs")
    assert (page.status_code, bool(page.headers["Retry-After"])) == (503, True)
    answer = visitor.get("/api/v1/projects/rl/jobs")
    assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
    assert answer.headers["Retry-After"]


def test_what_breaks_before_a_view_is_a_problem_document_too(visitor, monkeypatch):
    def lose(*_: object, **__: object) -> None:
        raise LOST[0]

    monkeypatch.setattr("django.middleware.csrf.CsrfViewMiddleware.process_view", lose)
    answer = visitor.get("/api/v1/projects/rl/jobs")
    assert answer.status_code == 503
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_mistake_of_the_portals_own_is_reported_as_one(visitor, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("jobs.web.jobs.table_page.job_table", fail)
    page = visitor.get("/rl/jobs")
    assert page.status_code == 500
    assert "Internal error" in page.text
