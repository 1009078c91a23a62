"""Starts the portal's parts in order, keeps them alive, and stops them in order.

It never touches jobs: those are no children of it, and outlive it.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from django.conf import settings

from monarch_portal.embedded import (
    child,
    forked,
    log_files,
    process_table,
    roles,
    skypilot_server,
)
from monarch_portal.embedded.account import server_account
from monarch_portal.embedded.errors import EmbeddedError, ServerStartError
from monarch_portal.embedded.home import Home
from monarch_portal.embedded.part import Part
from monarch_portal.embedded.postgres import PostgresServer
from monarch_portal.embedded.redis_server import RedisServer

log = logging.getLogger(__name__)

LOOK_INTERVAL_S = 0.5
LOG_INTERVAL_S = 30.0
READY_TIMEOUT_S = 60.0
# How often to look whether a cloud was added. Its server starts slowly, and tries less often.
SKYPILOT_INTERVAL_S = 3.0
SKYPILOT_LONGEST_DELAY_S = 60.0


class Supervisor:
    """One portal on one home. `leave_lock` closes a fork's copy of the instance lock."""

    def __init__(self, home: Home, listener: socket.socket, leave_lock: Callable[[], None]) -> None:
        self._home = home
        self._listener = listener
        self._leave_lock = leave_lock
        self._stop_requested = False
        self._table_is_due = False
        self._servers = self._server_parts()
        self._roles: list[Part] = []
        self._skypilot: Part | None = None
        self._skypilot_due = 0.0

    def run(self, on_ready: Callable[[str], None]) -> None:
        """Run the portal until a signal ends it. `on_ready` gets the path of a sign-in link.

        EmbeddedError if a part does not start; whatever was started is stopped again.
        """
        wake_up = self._listen_for_signals()
        try:
            for server in self._servers:
                server.begin()
                self._write_table()
            roles.preload()
            sign_in_path = self._prepare()
            self._begin_roles()
            on_ready(sign_in_path)
            self._watch(wake_up)
        finally:
            self._stop()

    def _server_parts(self) -> list[Part]:
        home = self._home
        account = server_account(home.postgres.data.parent, home.number)
        parts = []
        if settings.MPORTAL_EMBEDDED:
            postgres = PostgresServer(home.postgres, account)
            signals = (signal.SIGINT, signal.SIGQUIT)
            parts.append(Part("postgres", postgres.start, signals, patience_s=20.0))
        if settings.MPORTAL_EMBEDDED_REDIS:
            parts.append(Part("redis", RedisServer(home.redis, account).start))
        return parts

    def _add_skypilot(self) -> None:
        """Begin to look after SkyPilot's server once it is wanted: that may be at any time.

        It is started among the roles: no role waits for it, and it depends on none.
        """
        if self._skypilot is not None or time.monotonic() < self._skypilot_due:
            return
        self._skypilot_due = time.monotonic() + SKYPILOT_INTERVAL_S
        paths = self._home.skypilot
        if settings.MPORTAL_SKYPILOT_ENDPOINT:
            return
        if skypilot_server.is_wanted(paths, settings.MPORTAL_SKYPILOT):
            server = skypilot_server.SkyPilotServer(paths, self._home.number)
            self._skypilot = Part(
                "skypilot",
                server.start,
                patience_s=skypilot_server.STOP_PATIENCE_S,
                longest_delay_s=SKYPILOT_LONGEST_DELAY_S,
            )
            self._roles.append(self._skypilot)

    def _role(self, name: str, run: Callable[[], None]) -> Part:
        def in_fork() -> None:
            self._leave_lock()
            if name != "web":
                self._listener.close()
            run()

        log_file = self._log_file(name)
        return Part(name, lambda: forked.fork(name, in_fork, log_file))

    def _prepare(self) -> str:
        """Migrate and make the first user, in a fork: this process must hold no connection."""
        reading, writing = os.pipe()

        def in_fork() -> None:
            self._leave_lock()
            os.write(writing, roles.prepare().encode())

        fork = forked.fork("prepare", in_fork, self._log_file("prepare"))
        os.close(writing)
        with os.fdopen(reading) as pipe:
            answer = pipe.read()
        if fork.wait() != 0:
            text = child.tail(self._log_file("prepare"))
            raise EmbeddedError(f"The database could not be brought up to date:\n{text}")
        return answer

    def _begin_roles(self) -> None:
        # Objects that live for ever are taken from the collector's view, which would otherwise
        # write to their pages and so unshare them.
        gc.collect()
        gc.freeze()
        self._roles = [
            self._role("web", lambda: roles.web(self._listener)),
            self._role("worker", roles.worker),
            self._role("beat", roles.beat),
            self._role("follower", roles.follower),
            self._role("gateway", roles.gateway),
        ]
        for role in self._roles:
            role.begin()
        self._write_table()
        web = self._roles[0].process
        if web is None or not child.wait_until_ready(
            web, self._web_answers, timeout_s=READY_TIMEOUT_S
        ):
            text = child.tail(self._log_file("web"))
            raise ServerStartError(f"The web process did not start:\n{text}")

    def _web_answers(self) -> bool:
        try:
            with socket.create_connection(self._listener.getsockname(), timeout=5) as client:
                client.sendall(b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
                return b" 200 " in client.recv(64)
        except OSError:
            return False

    def _watch(self, wake_up: int) -> None:
        logs_due = 0.0
        while not self._stop_requested:
            self._add_skypilot()
            started = [part.look() for part in (*self._servers, *self._roles)]
            if any(started) or self._table_is_due:
                self._write_table()
            if time.monotonic() > logs_due:
                log_files.bound_logs(self._home.logs)
                logs_due = time.monotonic() + LOG_INTERVAL_S
            ready, _, _ = select.select([wake_up], [], [], LOOK_INTERVAL_S)
            if ready:
                os.read(wake_up, 512)

    def _stop(self) -> None:
        for role in self._roles:
            role.ask_to_end()
        for part in (*self._roles, *reversed(self._servers)):
            part.end()
        self._home.process_table.unlink(missing_ok=True)

    def _write_table(self) -> None:
        pids = {
            part.name: part.process.pid
            for part in (*self._servers, *self._roles)
            if part.process is not None
        }
        try:
            process_table.write_table(self._home.process_table, {"supervisor": os.getpid(), **pids})
        except OSError:
            # What it is for can wait until there is room; what it describes cannot.
            self._table_is_due = True
            log.warning("process table not written", exc_info=True, extra={"action": "table"})
        else:
            self._table_is_due = False

    def _log_file(self, name: str) -> Path:
        return self._home.logs / f"{name}.log"

    def _listen_for_signals(self) -> int:
        """Note signals in a flag; a pipe, whose reading end is returned, ends the wait at once."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

        def note(_number: int, _frame: FrameType | None) -> None:
            self._stop_requested = True

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, note)
        # A handler, not SIG_IGN: children that end must wake the loop.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        return reading
