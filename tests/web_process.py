"""The web process alone, as a process of its own on the test's database and Redis."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import httpx
from django.conf import settings
from django.db import connection

from tests.waiting import eventually

# As the portal's own web process does; `uvicorn --fd` takes every socket for a Unix one.
SERVE = """
import socket, sys
import uvicorn
from monarch_portal.asgi import application
from monarch_portal.gateway_upgrade import GatewayUpgrade
config = uvicorn.Config(
    application, http="h11", log_level="warning", lifespan="off", ws=GatewayUpgrade
)
uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""
CHECKOUT = Path(__file__).resolve().parent.parent


def environment(home: Path) -> dict[str, str]:
    """Return the environment of one of the portal's processes on the test's database and Redis."""
    database = connection.settings_dict
    address = f"{database['USER']}:{database['PASSWORD']}@/{database['NAME']}"
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "DJANGO_SETTINGS_MODULE": "monarch_portal.settings",
        "DATABASE_URL": f"postgresql://{address}?host={quote(str(database['HOST']))}",
        "REDIS_URL": settings.REDIS_URL,
        "MPORTAL_HOME": str(home),
        "SECRET_KEY": settings.SECRET_KEY,
    }


class WebProcess:
    """A server process on one port for its whole life, however often it is killed and started.

    `extra`: further environment variables.
    """

    def __init__(self, home: Path, **extra: str) -> None:
        self._home = home
        self._extra = extra
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def start(self) -> None:
        """Start serving; returns when it answers."""
        descriptor = self._listener.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(descriptor)],
            cwd=CHECKOUT,
            env={**environment(self._home), **self._extra},
            pass_fds=[descriptor],
        )
        assert eventually(self._answers, timeout_s=60)

    @property
    def pid(self) -> int:
        """Return the pid of the running process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Send SIGKILL; do nothing if it does not run."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """Kill it and free its port."""
        self.kill()
        self._listener.close()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=2).is_success
        except httpx.TransportError:
            return False
