"""The database session that holds this process's advisory locks, kept alive by a heartbeat.

PostgreSQL releases a session's locks when the session ends: at once when the process is killed,
and after `LEASE_S` by PostgreSQL's own clock when the process hangs and the heartbeat stops.
"""

from __future__ import annotations

import logging
import os
import threading

import psycopg
from django.db import OperationalError, connection

log = logging.getLogger(__name__)

# A session that was idle for so long is ended by the server, and its locks are free.
LEASE_S = 6.0
HEARTBEAT_S = 1.5

Key = tuple[int, int]


class LockSession:
    """One session for all threads of a process, opened when it is needed."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._guard = threading.Lock()
        self._session: psycopg.Connection | None = None
        # The number of the session that holds each key: a lost lock may be taken again meanwhile.
        self._held: dict[Key, int] = {}
        self._number = 0
        self._heart: threading.Thread | None = None
        self._closing = threading.Event()

    def take(self, key: Key) -> int | None:
        """Lock `key` and return the session's number for `give_back`; None if the key is taken.

        OperationalError: the database is away.
        """
        with self._guard:
            if key in self._held:
                # PostgreSQL lets a session repeat its lock; two threads of one process must not.
                return None
            if not self._ask_twice("SELECT pg_try_advisory_lock(%s, %s)", key):
                return None
            self._held[key] = self._number
            self._start_heart()
            return self._number

    def give_back(self, key: Key, number: int) -> None:
        """Unlock `key`. Do nothing if the session that held it has ended: so has the lock."""
        with self._guard:
            if self._held.get(key) != number:
                return
            del self._held[key]
            try:
                self._ask("SELECT pg_advisory_unlock(%s, %s)", key)
            except psycopg.Error as error:
                self._lose(error)

    def close(self) -> None:
        """End the session, which releases every lock."""
        self._closing.set()
        heart = self._heart
        if heart is not None:
            heart.join()
        with self._guard:
            self._heart = None
            self._drop()

    def _ask_twice(self, query: str, key: Key) -> bool:
        """Run the query; open a new session if the last one ended while it was idle."""
        try:
            return self._ask(query, key)
        except psycopg.Error as error:
            self._lose(error)
        try:
            return self._ask(query, key)
        except psycopg.Error as error:
            self._lose(error)
            raise OperationalError(str(error)) from error

    def _ask(self, query: str, key: Key) -> bool:
        if self._session is None:
            self._session = _connect()
            self._number += 1
        row = self._session.execute(query, key).fetchone()
        return bool(row and row[0])

    def _start_heart(self) -> None:
        if self._heart is None or not self._heart.is_alive():
            self._closing.clear()
            self._heart = threading.Thread(target=self._beat, name="locks", daemon=True)
            self._heart.start()

    def _beat(self) -> None:
        """Use the session every `HEARTBEAT_S`, for as long as it holds a lock."""
        while not self._closing.wait(HEARTBEAT_S):
            with self._guard:
                if not self._held:
                    # An idle session ends by itself; the next lock opens another.
                    self._heart = None
                    return
                try:
                    if self._session is not None:
                        self._session.execute("SELECT 1")
                except psycopg.Error as error:
                    self._lose(error)

    def _lose(self, error: psycopg.Error) -> None:
        if self._held:
            context = {"action": "locks_lost", "locks": len(self._held)}
            log.warning("locks lost: %s", error, extra=context)
        self._drop()

    def _drop(self) -> None:
        self._held.clear()
        if self._session is not None:
            self._session.close()
            self._session = None


def _connect() -> psycopg.Connection:
    parameters = connection.get_connection_params()
    # Django's own connections need these, this one does not.
    for name in ("context", "cursor_factory", "prepare_threshold"):
        parameters.pop(name, None)
    lease = f"-c idle_session_timeout={int(LEASE_S * 1000)}"
    parameters["options"] = f"{parameters.get('options', '')} {lease}".strip()
    return psycopg.connect(**parameters, autocommit=True)


_of_this_process = LockSession()


def lock_session() -> LockSession:
    """Return this process's session; a fork gets its own."""
    global _of_this_process  # noqa: PLW0603
    if _of_this_process.pid != os.getpid():
        _of_this_process = LockSession()
    return _of_this_process
