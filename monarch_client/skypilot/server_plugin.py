"""What SkyPilot's own API server loads when it belongs to a portal (`~/.sky/plugins.yaml`).

It lets in nobody without the portal's secret, looks for the network where there always is one, and
answers what a task would cost, as data. Nothing else of the portal imports it.
"""

from __future__ import annotations

import os
import secrets
import signal
import stat
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from sky.server import plugins

from monarch_client.skypilot import server_routes

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ROUTES = {
    "/mportal/about": ("GET", server_routes.about),
    "/mportal/clouds": ("GET", server_routes.clouds),
    "/mportal/plan": ("POST", server_routes.plan),
    "/mportal/rates": ("GET", server_routes.rates),
}
# Besides SkyPilot's own few that never end. It would start one for each 300 MB of memory.
SHORT_WORKERS = 3
PARENT_LOOK_S = 2.0
HEALTH_PATH = "/api/health"
REFUSAL = (
    b'{"detail": "This SkyPilot server belongs to a portal; it takes requests with its token."}'
)


class PortalPlugin(plugins.BasePlugin):  # type: ignore[misc]  # sky is not typed for us
    """`secret_file` holds the token, 0600. `probe_url` answers whenever this machine has a network.

    PermissionError where others may read the token; FileNotFoundError where there is none. Either
    ends the server's start.
    """

    def __init__(self, secret_file: str, probe_url: str) -> None:
        self._secret_file = Path(secret_file)
        self._probe_url = probe_url

    @property
    def name(self) -> str:
        """As SkyPilot shows it."""
        return "mportal"

    def install(self, extension_context: Any) -> None:
        """In every process what it needs there; where there is an app, the guard and our routes."""
        from sky.backends import backend_utils  # noqa: PLC0415 - heavy, and known only by now

        # It would ask two public addresses, and call a portal without internet disconnected.
        backend_utils._TEST_IP_LIST[:] = [self._probe_url]
        if extension_context.context is plugins.PluginContext.MAIN:
            _bound_workers()
        if extension_context.context is plugins.PluginContext.EXECUTOR:
            _end_with_parent()
        app = extension_context.app
        if app is not None:
            for path, (method, answer) in ROUTES.items():
                app.add_api_route(path, answer, methods=[method])
            app.add_middleware(TokenGuard, token=secret_of(self._secret_file))


def _bound_workers() -> None:
    from sky.server import config  # noqa: PLC0415 - imports the jobs controller

    smallest = config._get_min_short_workers
    config._max_short_worker_parallism = lambda *_memory, **_: smallest() + SHORT_WORKERS


def _end_with_parent() -> None:
    """End this process once its parent has: a killed server's workers would go on for hours."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_LOOK_S)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="mportal-parent", daemon=True).start()


class TokenGuard:
    """Outermost middleware: the token, or no answer."""

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
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": REFUSAL})

    def _may_pass(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        if not given:
            return _asks_for_health(scope)
        return len(given) == 1 and secrets.compare_digest(given[0], self._expected)


def _asks_for_health(scope: Scope) -> bool:
    return scope.get("method") == "GET" and scope["path"] == HEALTH_PATH


def secret_of(file: Path) -> str:
    """The token that `file` holds. PermissionError where its mode lets others read it."""
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise PermissionError(f"{file} must be 0600: whoever reads it may use every cloud here.")
    token = file.read_text().strip()
    if not token:
        raise PermissionError(f"{file} is empty: the server would be open to everybody.")
    return token
