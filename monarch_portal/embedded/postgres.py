"""The embedded PostgreSQL: made on first use, reached through a Unix socket and a password.

The binaries come from a wheel; starting and stopping them is done here. Who calls and when is the
supervisor's business.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg import sql

from monarch_portal.embedded import binaries, child
from monarch_portal.embedded.account import Account, borrowed_account
from monarch_portal.embedded.child import Process
from monarch_portal.embedded.errors import DataVersionError, EmbeddedError, ServerStartError
from monarch_portal.embedded.private_files import make_private, secret_in, write_owned
from monarch_portal.embedded.server_paths import DATABASE, PostgresPaths

MAJOR_VERSION = "18"
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
            self._make_data()
        self._check_version()
        self._clear_leftovers()
        self.process = child.start(self._program())
        if not child.wait_until_ready(self.process, self._answers, timeout_s=START_TIMEOUT_S):
            self.stop()
            raise ServerStartError(f"PostgreSQL did not start:\n{child.tail(self._paths.log)}")
        self._make_database()
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

    def _make_data(self) -> None:
        """Run initdb beside the final place, and move the result there when it is complete."""
        home = self._paths.data.parent
        make_private(home, self._account)
        unfinished = home / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._initdb(unfinished, secret_in(self._paths.secret))
        unfinished.rename(self._paths.data)

    def _initdb(self, target: Path, password: str) -> None:
        account = borrowed_account() if self._account.changes else self._account
        # The borrowed account must get through to its directory while initdb runs.
        work = target.parent
        make_private(work, account)
        password_file = work / "initdb-password"
        write_owned(password_file, password, account)
        switch = account.changes
        try:
            done = subprocess.run(
                self._initdb_argv(target, password_file),
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                user=account.uid if switch else None,
                group=account.gid if switch else None,
                extra_groups=[] if switch else None,
            )
        finally:
            password_file.unlink()
        if done.returncode:
            raise EmbeddedError(f"initdb failed:\n{done.stderr.decode(errors='replace').strip()}")
        _give(work, self._account)

    def _initdb_argv(self, target: Path, password_file: Path) -> list[str]:
        argv = [str(self._bin / "initdb"), f"--pgdata={target}", f"--username={DATABASE}"]
        argv += ["--auth=scram-sha-256", f"--pwfile={password_file}", "--encoding=UTF8"]
        argv += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        return argv if self._durable else [*argv, "--no-sync"]

    def _check_version(self) -> None:
        version = (self._paths.data / "PG_VERSION").read_text().strip()
        if version != MAJOR_VERSION:
            raise DataVersionError(
                f"{self._paths.data} was written by PostgreSQL {version}, this release brings "
                f"{MAJOR_VERSION}. Start the release that wrote it, save the database with "
                f"pg_dump, move the directory away, start this release, load the dump with psql."
            )

    def _clear_leftovers(self) -> None:
        """End what a killed portal left of this server, and remove its lock files.

        The server would take the numbers in them for its own even when zombies or strangers have
        them. The instance lock is what tells that no living portal uses the data.
        """
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            if _gone(self._paths.data):
                break
            for pid in _working_in(self._paths.data):
                os.kill(pid, number)
        for lock in (self._paths.data / "postmaster.pid", *self._paths.sockets.glob(".s.PGSQL.*")):
            lock.unlink(missing_ok=True)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self._paths.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _make_database(self) -> None:
        with psycopg.connect(self._paths.url("postgres"), autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
            if found.fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def _working_in(directory: Path) -> Iterator[int]:
    """The living processes whose working directory this is: PostgreSQL's are in its data."""
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


def _give(tree: Path, account: Account) -> None:
    if os.geteuid() != 0:
        return
    for path in (tree, *tree.rglob("*")):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
