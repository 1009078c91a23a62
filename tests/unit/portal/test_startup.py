"""The web process on the database of a newer release, whatever the server does at its start."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from monarch_portal import startup
from monarch_portal.startup import Startup

WHY = "The database was upgraded by a newer release."


class Server:
    """A server's side of ASGI: what the application was sent, and what it sends."""

    def __init__(self) -> None:
        self.served: list[str] = []
        self.application = Startup(self._serve)

    async def _serve(self, scope: Any, _receive: Any, _send: Any) -> None:
        self.served.append(scope["path"])

    def ask(self, **scope: Any) -> list[dict[str, Any]]:
        """Return all that the application sends for `scope`."""
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.application(scope, receive, send))
        return sent


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of what the next checks of the database find; after that they fail."""
    found: list[str] = []
    monkeypatch.setattr(startup, "why_not_to_start", lambda: found.pop(0))
    return found


def test_a_server_does_not_start_on_a_newer_database(looks: list[str]) -> None:
    looks.append(WHY)
    assert Server().ask(type="lifespan") == [{"type": "lifespan.startup.failed", "message": WHY}]


def test_a_server_that_checks_nothing_at_its_start_serves_no_request_on_a_newer_database(
    looks: list[str],
) -> None:
    looks += [WHY, WHY]
    server = Server()
    for _ in range(2):
        start, body = server.ask(type="http", path="/sign-in")
        assert start["status"] == 503
        assert json.loads(body["body"])["detail"] == WHY
    assert server.served == []


@pytest.mark.parametrize("first", [{"type": "lifespan"}, {"type": "http", "path": "/"}])
def test_the_database_is_looked_at_once(looks: list[str], first: dict[str, str]) -> None:
    looks.append("")
    server = Server()
    for scope in (first, {"type": "http", "path": "/jobs"}):
        server.ask(**scope)
    assert server.served[-1] == "/jobs"
    assert looks == []
