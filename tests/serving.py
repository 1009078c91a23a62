"""A web server in a thread of the test's process, on the test's database and Redis."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
import uvloop

from tests.waiting import eventually


class WebServer:
    """A web server that serves as the portal's own web process does: ASGI, with live streams."""

    def __init__(self, **config: Any) -> None:
        from monarch_portal.asgi import application
        from monarch_portal.gateway_upgrade import GatewayUpgrade

        config = {"ws": GatewayUpgrade, "timeout_graceful_shutdown": 1, **config}
        self._server = uvicorn.Server(uvicorn.Config(application, port=0, **config))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> str:
        """Start it, and return its address."""
        self._thread.start()
        assert eventually(lambda: self._server.started or not self._thread.is_alive())
        assert self._server.started
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def is_idle(self) -> bool:
        """Whether it is working on no request."""
        return not self._server.server_state.tasks

    def close(self) -> None:
        """End it, and the requests that it is working on."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(20)

    def _run(self) -> None:
        # Not `Server.run`: it makes uvloop the loop of all later tests of the process.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._server.serve())


@contextmanager
def serving() -> Iterator[str]:
    """Run a server for the block, and yield its address."""
    server = WebServer(http="h11", log_level="error", lifespan="off", server_header=False)
    yield server.start()
    server.close()
