"""The portal's own log: what a request that fails leaves in it, and what no request does."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from monarch_portal.logging_config import JsonFormatter

pytestmark = pytest.mark.django_db


@pytest.fixture
def log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> pytest.LogCaptureFixture:
    """Return the log, with its lines as the portal writes them."""
    monkeypatch.setattr(caplog.handler, "formatter", JsonFormatter())
    return caplog


@pytest.mark.parametrize("path", ["/sign-in", "/api/v1/healthz"])
def test_the_log_has_a_failed_request_under_the_id_that_the_answer_names(
    path: str, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("django.middleware.csrf.CsrfViewMiddleware.process_view", fail)
    answer = Client(raise_request_exception=False).get(path)
    request_id = answer.headers["X-Request-ID"]
    assert answer.status_code == 500
    assert path.startswith("/api") or request_id in answer.text
    lines = [json.loads(line) for line in log.text.splitlines()]
    assert [each["request_id"] for each in lines if "a bug" in each.get("exception", "")]
    assert {each["request_id"] for each in lines} == {request_id}


@pytest.mark.parametrize("method", ["post", "put", "get"])
def test_no_secret_of_an_address_is_logged(method: str, log: pytest.LogCaptureFixture) -> None:
    http = Client(enforce_csrf_checks=True)
    for path in ("/sign-in/once/4mBz-9x", "/sign-in/once/4mBz-9x/more"):
        getattr(http, method)(path)
    assert log.text
    assert "4mBz" not in log.text
    lines = [json.loads(line) for line in log.text.splitlines()]
    assert all(each["request_id"] for each in lines if each["logger"].startswith("django"))
