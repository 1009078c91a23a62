"""An ASGI middleware that lets a request pass only with the portal's token. Never imports sky."""

from __future__ import annotations

import secrets
import stat
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEALTH_PATH = "/api/health"
REFUSAL = (
    b'{"detail": "This SkyPilot server belongs to a portal; it takes requests with its token."}'
)
POLICY_VIOLATION = 1008


class TokenGuard:
    """Outermost middleware: the token, or no answer but to `GET /api/health`."""

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on without its token, which SkyPilot would look up among its own."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
        elif self._may_pass(scope):
            kept = [pair for pair in scope["headers"] if pair[0].lower() != b"authorization"]
            await self._app({**scope, "headers": kept}, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        else:
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": REFUSAL})

    def _may_pass(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        if not given:
            return scope.get("method") == "GET" and scope["path"] == HEALTH_PATH
        return len(given) == 1 and secrets.compare_digest(given[0], self._expected)


def secret_of(file: Path) -> str:
    """Return the token that `file` holds. PermissionError if its mode lets others read it."""
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise PermissionError(f"{file} must be 0600: its readers may use every cloud here.")
    token = file.read_text().strip()
    if not token:
        raise PermissionError(f"{file} is empty: the server would be open to all.")
    return token
