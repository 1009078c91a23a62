"""The plugin of the SkyPilot API server that belongs to a portal (`~/.sky/plugins.yaml`).

It refuses calls without the portal's secret, looks for the network where there always is one, and
answers what a task would cost, as data. Nothing else of the portal imports it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from sky.server import plugins

from monarch_client.skypilot import server_routes
from monarch_client.skypilot.token_guard import TokenGuard, secret_of

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
        """The name that SkyPilot shows."""
        return "mportal"

    def install(self, extension_context: Any) -> None:
        """Install what each process needs; where there is an app, the guard and our routes."""
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
