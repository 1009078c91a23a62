"""The embedded PostgreSQL: made on first use, reached through a Unix socket and a password.

The binaries come from a wheel; starting and stopping them is done here. Who calls and when is the
supervisor's business.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg import sql

from monarch_portal.embedded import binaries, child
from monarch_portal.embedded.account import Account
from monarch_portal.embedded.child import Process
from monarch_portal.embedded.errors import EmbeddedError, ServerStartError
from monarch_portal.embedded.postgres_data import check_version, make_data
from monarch_portal.embedded.private_files import make_private, secret_in
from monarch_portal.embedded.server_paths import DATABASE, PostgresPaths

START_TIMEOUT_S = 60.0
STOP_PATIENCE_S = 20.0
LEFTOVER_PATIENCE_S = 2.0

# Small on purpose: the whole portal should idle in less than half a gigabyte.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "io_method": "sync",
    "max_worker_processes": "1",
    "max_parallel_workers": "0",
    "autovacuum_max_workers": "1",
    "max_logical_replication_workers": "0",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "max_wal_size": "256MB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "off",
    "log_line_prefix": "%m [%p] ",
}
UNSAFE_AND_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class PostgresServer:
    """One PostgreSQL under our own supervision."""

    def __init__(self, paths: PostgresPaths, account: Account, *, durable: bool = True) -> None:
        self._paths = paths
        self._account = account
        self._durable = durable
        self._bin = binaries.postgres_bin(account, paths.copies)
        self.process: Process | None = None

    def start(self) -> Process:
        """Start the server, making its data first if there is none. Returns when it answers.

        DataVersionError: the data is of another major version. ServerStartError: it did not start.
        """
        make_private(self._paths.sockets, self._account)
        if not self._paths.data.exists():
            make_data(self._bin, self._paths, self._account, durable=self._durable)
        check_version(self._paths.data)
        if not self._paths.admin_secret.exists():
            raise EmbeddedError(
                f"{self._paths.admin_secret} is missing: it opens {self._paths.data}."
            )
        self._clear_leftovers()
        self.process = child.start(self._program())
        if not child.wait_until_ready(self.process, self._answers, timeout_s=START_TIMEOUT_S):
            self.stop()
            raise ServerStartError(f"PostgreSQL did not start:\n{child.tail(self._paths.log)}")
        try:
            self._make_database()
        except psycopg.Error as error:
            self.stop()
            raise ServerStartError(f"PostgreSQL started and cannot be used: {error}") from error
        return self.process

    def stop(self) -> None:
        """End the server: politely (roll back, disconnect), then harder. Safe to repeat."""
        if self.process is not None:
            signals = (signal.SIGINT, signal.SIGQUIT)
            child.stop(self.process, signals=signals, patience_s=STOP_PATIENCE_S)

    def _program(self) -> child.Program:
        settings = SETTINGS | {"unix_socket_directories": str(self._paths.sockets)}
        if not self._durable:
            settings |= UNSAFE_AND_FAST
        argv = [str(self._bin / "postgres"), "-D", str(self._paths.data)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        return child.Program(
            argv,
            log=self._paths.log,
            account=self._account,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            on_orphaned=signal.SIGINT,
        )

    def _clear_leftovers(self) -> None:
        """End what a killed portal left of this server, and remove its lock files.

        The server would take the numbers in them for its own even when zombies or strangers have
        them. The instance lock ensures that no living portal uses the data.
        """
        data = self._paths.data.resolve()
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            if _gone(data):
                break
            for pid in _working_in(data):
                # Its processes end with the first one: this one may be gone since it was listed.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        for lock in (self._paths.data / "postmaster.pid", *self._paths.sockets.glob(".s.PGSQL.*")):
            lock.unlink(missing_ok=True)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self._paths.admin_url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _make_database(self) -> None:
        """Make the portal's role, which may do nothing outside its databases, and its database."""
        name, password = sql.Identifier(DATABASE), sql.Literal(secret_in(self._paths.secret))
        with psycopg.connect(self._paths.admin_url, autocommit=True) as admin:
            if not admin.execute("SELECT FROM pg_roles WHERE rolname = %s", [DATABASE]).rowcount:
                role = sql.SQL("CREATE ROLE {} LOGIN CREATEDB PASSWORD {}")
                admin.execute(role.format(name, password))
            if not admin.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE]).rowcount:
                admin.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(name, name))


def _working_in(directory: Path) -> Iterator[int]:
    """Yield the living processes with this working directory: PostgreSQL's is its data."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cwd").readlink() == directory:
                yield int(entry.name)


def _gone(directory: Path) -> bool:
    deadline = time.monotonic() + LEFTOVER_PATIENCE_S
    while any(_working_in(directory)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
