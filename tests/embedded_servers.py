"""The servers of a test run: one PostgreSQL for all its processes, and a Redis for each of them.

The process that pytest was started as owns PostgreSQL: it starts the server once tests that need it
are collected, and stops it at the end of the run. The workers of pytest-xdist are its children and
find the server by an environment variable. Each has a database of its own there, a copy of one that
was migrated once.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from monarch_portal.embedded import child
from monarch_portal.embedded.account import SERVER_IDS, server_account
from monarch_portal.embedded.postgres import PostgresServer
from monarch_portal.embedded.private_files import secret_in
from monarch_portal.embedded.redis_server import RedisServer
from monarch_portal.embedded.server_paths import DATABASE, PostgresPaths, RedisPaths

# "<process id> <directory>" of the process that owns PostgreSQL; set for its workers.
RUN = "MPORTAL_TEST_RUN"
# Up to eight workers may each use as many connections as a portal has.
SETTINGS = {"max_connections": "480"}
STOP_PATIENCE_S = 5.0


class RunPostgres(PostgresServer):
    """A PostgreSQL for many workers, with data that is not needed afterwards."""

    def stop(self) -> None:
        """End the server at once, without writing anything down. Safe to repeat."""
        if self.process is not None:
            signals = (signal.SIGQUIT,)
            child.stop(self.process, signals=signals, patience_s=STOP_PATIENCE_S)

    def _program(self) -> child.Program:
        program = super()._program()
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        return replace(program, argv=[*program.argv, *settings])  # the last value counts


class SessionServers:
    """The servers of one process. Settings need their paths at once; they start when needed."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._started: dict[str, RunPostgres | RedisServer] = {}
        owner = _owners_directory()
        # A worker's is inside its owner's, so that the owner removes what a killed worker has left.
        self.root = Path(tempfile.mkdtemp(prefix="mportal-test-", dir=owner or "/tmp"))
        # Its own files are 0600 or in 0700 directories; the servers' account must get through.
        self.root.chmod(0o711)
        self.is_shared = owner is not None
        self._run = owner or self.root
        if not self.is_shared:
            os.environ[RUN] = f"{self._pid} {self.root}"
        self.postgres = PostgresPaths(
            self._run / "postgres" / "data",
            self._run / "pg",
            self._run / "server.log",
            self._run / "postgres-password",
            self._run / "postgres-admin-password",
            self._run / "binaries",
        )
        secret_in(self.postgres.secret)  # the settings need the password before the server starts
        self.redis = RedisPaths(
            self.root / "redis", self.root / "server.log", self.root / "binaries"
        )
        self._account = server_account(self.root / "postgres", self._pid % len(SERVER_IDS))

    def request_postgres(self) -> None:
        """Ask the owner, from a worker, to start PostgreSQL, which it does before any test runs."""
        (self._run / "postgres-requested").touch()

    @property
    def postgres_requested(self) -> bool:
        """Whether a worker needs PostgreSQL."""
        return (self._run / "postgres-requested").exists()

    def start_postgres(self) -> None:
        """Start PostgreSQL, once. Only its owner does."""
        if not self.is_shared and "postgres" not in self._started:
            server = RunPostgres(self.postgres, self._account, durable=False)
            self._started["postgres"] = server
            server.start()

    def start_redis(self) -> None:
        """Start Redis, once."""
        if "redis" not in self._started:
            server = RedisServer(self.redis, self._account)
            self._started["redis"] = server
            server.start()

    def template(self, migrate: Callable[[], None]) -> str:
        """Return the name of the database to copy, which the run's first worker has migrated."""
        done = self._run / "migrated"
        with _alone(self._run / "migrating"):
            if not done.exists():
                migrate()
                done.touch()
        return DATABASE

    def close(self) -> None:
        """Stop this process's servers and remove its directory. Nothing the second time."""
        if os.getpid() != self._pid:
            return  # a fork's
        for server in self._started.values():
            server.stop()
        shutil.rmtree(self.root, ignore_errors=True)


def _owners_directory() -> Path | None:
    """Return the directory of the process that started this worker; None if this is no worker."""
    owner, _, directory = os.environ.get(RUN, "").partition(" ")
    if "PYTEST_XDIST_WORKER" in os.environ and owner == str(os.getppid()):
        return Path(directory)
    return None


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which ends with the process at the latest."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


SERVERS = SessionServers()
# Where no test session ends it: whatever else imports the tests' settings.
atexit.register(SERVERS.close)
