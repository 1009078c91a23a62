"""Callers of the API with each role in project `rl`, by token, as programs call it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from jobs.backends.fake.backend import FakeBackend
from jobs.models import Project, User
from jobs.statuses import Role
from tests.factories import make_member, make_project, make_token, make_user

YAML = "name: hello\nrun: echo hello\n"


@dataclass
class Caller:
    """One user with a token. Paths are below /api/v1."""

    user: User | None
    headers: dict[str, str]
    http: Client

    def get(self, path: str, query: dict[str, Any] | None = None, **options: Any) -> Any:
        return self.send("GET", path, query_params=query, **options)

    def post(self, path: str, body: Any = b"", **options: Any) -> Any:
        return self.send("POST", path, body, **options)

    def delete(self, path: str) -> Any:
        return self.send("DELETE", path)

    def send(self, method: str, path: str, body: Any = b"", **options: Any) -> Any:
        headers = {**self.headers, **options.pop("headers", {})}
        send = getattr(self.http, method.lower())
        if method != "GET":
            options.setdefault("content_type", "application/json")
            options["data"] = body
        return send(f"/api/v1{path}", headers=headers, **options)


def caller_for(user: User | None, **token: Any) -> Caller:
    http = Client(raise_request_exception=False)
    if user is None:
        return Caller(None, {}, http)
    _, secret = make_token(user, **token)
    return Caller(user, {"Authorization": f"Bearer {secret}"}, http)


@pytest.fixture
def project(db) -> Project:
    return make_project("rl")


@pytest.fixture
def viewer(project) -> Caller:
    return caller_for(make_member(project, Role.VIEWER))


@pytest.fixture
def member(project) -> Caller:
    return caller_for(make_member(project, Role.MEMBER))


@pytest.fixture
def maintainer(project) -> Caller:
    return caller_for(make_member(project, Role.MAINTAINER))


@pytest.fixture
def admin(project) -> Caller:
    return caller_for(make_member(project, Role.ADMIN))


@pytest.fixture
def stranger(db) -> Caller:
    return caller_for(make_member(make_project("other"), Role.ADMIN))


@pytest.fixture
def root(db) -> Caller:
    return caller_for(make_user(is_superuser=True))


@pytest.fixture
def anonymous() -> Caller:
    return caller_for(None)


@pytest.fixture(autouse=True)
def no_broker(monkeypatch) -> list[tuple[Any, ...]]:
    """Record what would have been sent to the background: tests of the API start none."""
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: sent.append(args))
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)
    return sent


def assert_problem(response: Any, status: int, code: str) -> dict[str, Any]:
    """Return the body of a well-formed problem of that kind."""
    assert response["Content-Type"] == "application/problem+json", response.content
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["status"], body["code"]) == (status, status, code), body
    assert set(body) >= {"type", "title", "status", "code", "detail"}
    assert body["detail"]
    assert "Traceback" not in response.content.decode()
    return body


def messages(answer: Any) -> dict[str, str]:
    body = assert_problem(answer, 422, "invalid_settings")
    return {row["path"]: row["message"] for row in body["errors"]}


@pytest.fixture
def fake(settings, tmp_path) -> FakeBackend:
    """Return a backend with unlimited machines, unless a test limits them."""
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path)
    return FakeBackend(tmp_path)
