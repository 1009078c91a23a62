"""A web server in a thread of the test's process, on the test's database and Redis."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from monarch_portal.asgi import application
from tests.waiting import eventually


@contextmanager
def serving() -> Iterator[str]:
    """The address of the server, which serves as the portal's own web process does."""
    config = uvicorn.Config(
        application,
        http="h11",
        port=0,
        log_level="error",
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    assert eventually(lambda: server.started or not thread.is_alive()) and server.started
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(20)
