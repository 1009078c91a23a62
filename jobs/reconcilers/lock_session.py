"""The database session that holds this process's advisory locks, and proves that it is alive.

A lock belongs to its session. Kill the process, and PostgreSQL sees the socket close; stop or hang
it, and PostgreSQL ends the session that nobody uses any more. Its own clock alone decides.
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
    """One session for all threads of a process. It opens when it is needed."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._guard = threading.Lock()
        self._session: psycopg.Connection | None = None
        # Which session holds a key, by number: a lock that was lost may be taken again meanwhile.
        self._held: dict[Key, int] = {}
        self._number = 0
        self._heart: threading.Thread | None = None
        self._closing = threading.Event()

    def take(self, key: Key) -> int | None:
        """Lock `key`, and give what `give_back` wants to have; None when somebody holds it.

        OperationalError: the database is away.
        """
        with self._guard:
            if key in self._held:
                # A session may lock again what it has; two threads of one process must not.
                return None
            if not self._ask_twice("SELECT pg_try_advisory_lock(%s, %s)", key):
                return None
            self._held[key] = self._number
            self._start_heart()
            return self._number

    def give_back(self, key: Key, number: int) -> None:
        """Let go of `key`. Silent when the session that held it is gone: so is the lock."""
        with self._guard:
            if self._held.get(key) != number:
                return
            del self._held[key]
            try:
                self._ask("SELECT pg_advisory_unlock(%s, %s)", key)
            except psycopg.Error as error:
                self._lose(error)

    def close(self) -> None:
        """End the session; every lock is free."""
        self._closing.set()
        heart = self._heart
        if heart is not None:
            heart.join()
        with self._guard:
            self._heart = None
            self._drop()

    def _ask_twice(self, query: str, key: Key) -> bool:
        """The answer; a session that has ended while nobody needed it is opened again."""
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
        """Use the session now and then, for as long as a lock depends on it."""
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
    # What Django's own connections need and this one does not.
    for name in ("context", "cursor_factory", "prepare_threshold"):
        parameters.pop(name, None)
    lease = f"-c idle_session_timeout={int(LEASE_S * 1000)}"
    parameters["options"] = f"{parameters.get('options', '')} {lease}".strip()
    return psycopg.connect(**parameters, autocommit=True)


_of_this_process = LockSession()


def lock_session() -> LockSession:
    """This process's session; a fork gets one of its own."""
    global _of_this_process  # noqa: PLW0603
    if _of_this_process.pid != os.getpid():
        _of_this_process = LockSession()
    return _of_this_process
