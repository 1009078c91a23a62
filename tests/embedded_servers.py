"""One PostgreSQL and one Redis for a test session, in a short-lived directory of their own."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from monarch_portal.embedded.account import SERVER_IDS, server_account
from monarch_portal.embedded.postgres import PostgresServer
from monarch_portal.embedded.private_files import secret_in
from monarch_portal.embedded.redis_server import RedisServer
from monarch_portal.embedded.server_paths import PostgresPaths, RedisPaths


class SessionServers:
    """Paths are known at once, so that settings can name them; servers start when first needed."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="mportal-test-", dir="/tmp"))
        # Its own files are 0600 or lie in 0700 directories; the servers' account must get through.
        self.root.chmod(0o711)
        log = self.root / "server.log"
        data = self.root / "postgres" / "data"
        copies = self.root / "binaries"
        secrets = (self.root / "postgres-password", self.root / "postgres-admin-password")
        self.postgres = PostgresPaths(data, self.root / "pg", log, *secrets, copies)
        secret_in(self.postgres.secret)  # settings want the password before the server starts
        self.redis = RedisPaths(self.root / "redis", log, copies)
        self._account = server_account(data.parent, os.getpid() % len(SERVER_IDS))
        self._pid = os.getpid()
        self._started: dict[str, PostgresServer | RedisServer] = {}

    def start_postgres(self) -> None:
        """Start PostgreSQL; again is nothing."""
        if "postgres" not in self._started:
            server = PostgresServer(self.postgres, self._account, durable=False)
            self._started["postgres"] = server
            server.start()

    def start_redis(self) -> None:
        """Start Redis; again is nothing."""
        if "redis" not in self._started:
            server = RedisServer(self.redis, self._account)
            self._started["redis"] = server
            server.start()

    def close(self) -> None:
        """Stop what was started and remove the directory. Again, or in a fork, is nothing."""
        if os.getpid() != self._pid:
            return
        for server in self._started.values():
            server.stop()
        shutil.rmtree(self.root, ignore_errors=True)


SERVERS = SessionServers()
# Where no test session ends it: whatever else imports the tests' settings.
atexit.register(SERVERS.close)
