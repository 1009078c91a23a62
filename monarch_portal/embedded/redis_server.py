"""The embedded Redis: Celery's broker and the live hints, on a Unix socket, nothing on disk."""

from __future__ import annotations

import os
import signal

import redis

from monarch_portal.embedded import binaries, child
from monarch_portal.embedded.account import Account
from monarch_portal.embedded.child import Process
from monarch_portal.embedded.errors import ServerStartError
from monarch_portal.embedded.private_files import make_private
from monarch_portal.embedded.server_paths import RedisPaths

START_TIMEOUT_S = 20.0
STOP_PATIENCE_S = 5.0

# Messages are hints and the database finds the same work, so nothing is saved. Evicting would lose
# Celery's own bindings, so a full Redis refuses instead.
SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "save": "",
    "appendonly": "no",
    "maxmemory": "96mb",
    "maxmemory-policy": "noeviction",
    "databases": "2",
    "daemonize": "no",
}


class RedisServer:
    """One Redis under our own supervision."""

    def __init__(self, paths: RedisPaths, account: Account) -> None:
        self._paths = paths
        self._account = account
        self._binary = binaries.redis_server(account, paths.copies)
        self.process: Process | None = None

    def start(self) -> Process:
        """Start the server and return when it answers; ServerStartError otherwise."""
        make_private(self._paths.sockets, self._account)
        self._paths.socket.unlink(missing_ok=True)
        self.process = child.start(self._program())
        if not child.wait_until_ready(self.process, self._answers, timeout_s=START_TIMEOUT_S):
            self.stop()
            raise ServerStartError(f"Redis did not start:\n{child.tail(self._paths.log)}")
        return self.process

    def stop(self) -> None:
        """End the server. Safe to repeat."""
        if self.process is not None:
            child.stop(self.process, signals=(signal.SIGTERM,), patience_s=STOP_PATIENCE_S)

    def _program(self) -> child.Program:
        argv = [str(self._binary), "--unixsocket", str(self._paths.socket)]
        for name, value in (SETTINGS | {"dir": str(self._paths.sockets)}).items():
            argv += [f"--{name}", value]
        return child.Program(
            argv, log=self._paths.log, account=self._account, env={"PATH": os.defpath}
        )

    def _answers(self) -> bool:
        client = redis.Redis.from_url(self._paths.url, socket_timeout=2)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()
