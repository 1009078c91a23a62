"""The token guard: without the token SkyPilot's server answers nothing but its health check."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from monarch_client.skypilot.token_guard import Scope, TokenGuard, secret_of

TOKEN = "sky_right"
GOOD = (b"authorization", b"Bearer sky_right")


class Server:
    """A server that records the requests that reach it, and answers 200."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.sent: list[Any] = []

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        await send({"type": "http.response.start", "status": 200})


def requested(*headers: tuple[bytes, bytes], **fields: object) -> Server:
    server = Server()
    scope = {"type": "http", "method": "POST", "path": "/launch", "headers": list(headers)}

    async def send(message: Any) -> None:
        server.sent.append(message)

    async def receive() -> Any:
        return {}

    asyncio.run(TokenGuard(server, TOKEN)(scope | fields, receive, send))
    return server


def test_the_token_lets_in_and_stays_outside() -> None:
    server = requested(GOOD, (b"accept", b"*/*"))
    assert server.sent[0]["status"] == 200
    assert server.scopes[0]["headers"] == [(b"accept", b"*/*")]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"Bearer sky_wrong")],
        [(b"authorization", b"Bearer sky_righ")],
        [(b"authorization", b"Basic sky_right")],
        [(b"authorization", b"")],
        [(b"Authorization", b"Bearer sky_wrong"), GOOD],
        [(b"x-auth-request-email", b"admin@example.org")],
    ],
)
def test_without_it_nothing_comes_through(headers: list[tuple[bytes, bytes]]) -> None:
    server = requested(*headers)
    assert server.sent[0]["status"] == 401
    assert server.scopes == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/health"),
        ("GET", "/api/health/"),
        ("GET", "/api/health/../status"),
        ("GET", "//api/health"),
        ("GET", "/api/status"),
        ("GET", "/dashboard"),
        ("OPTIONS", "/launch"),
    ],
)
def test_only_its_health_is_public(method: str, path: str) -> None:
    assert requested(method=method, path=path).sent[0]["status"] == 401


def test_its_health_is_public_but_not_to_a_wrong_token() -> None:
    health = {"method": "GET", "path": "/api/health"}
    assert requested(**health).sent[0]["status"] == 200
    assert requested((b"authorization", b"Bearer x"), **health).sent[0]["status"] == 401


def test_a_websocket_without_it_is_closed() -> None:
    server = requested(type="websocket")
    assert server.sent == [{"type": "websocket.close", "code": 1008}]
    assert requested(GOOD, type="websocket").scopes


def test_starting_and_stopping_need_no_token() -> None:
    assert requested(type="lifespan").scopes


def test_a_token_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o640)
    with pytest.raises(PermissionError, match="0600"):
        secret_of(file)
    file.chmod(0o600)
    assert secret_of(file) == TOKEN
    file.write_text("\n")
    with pytest.raises(PermissionError, match="empty"):
        secret_of(file)
