"""The portal's calls to SkyPilot without importing it: a child process does, see `child.py`.

One caller serves all threads of a process. Two that ask the same at once share one call.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from monarch_client.skypilot.connection import CallerOptions, Connection
from monarch_client.skypilot.errors import SkyPilotError, StillBusyError
from monarch_client.skypilot.flights import Flight, key_of, request_of
from monarch_client.skypilot.streams import LineStream

__all__ = ["CallerOptions", "SkyCaller", "SkyPilotError", "StillBusyError"]

log = logging.getLogger(__name__)

CHILD = ("-m", "monarch_client.skypilot.child")
IDLE_S = 600.0
# A call that has no answer by then never gets one. Uploads of a large folder take minutes.
LONGEST_CALL_S = 900.0
ENDED = "SkyPilot's process ended during the call; it may have been carried out."


class SkyCaller:
    """A caller of one SkyPilot API server. Its child starts at the first call, ends when idle."""

    _connection: Connection | None
    # By key: the calls that a new one may join. By number: the calls that a child has to answer.
    _latest: dict[str, Flight]
    _unanswered: dict[Connection, dict[int, Flight]]
    _streams: dict[int, LineStream]

    def __init__(
        self,
        options: CallerOptions,
        *,
        idle_s: float = IDLE_S,
        longest_call_s: float = LONGEST_CALL_S,
        child: Sequence[str] = CHILD,
    ) -> None:
        self.options = options
        self._idle_s = idle_s
        self._longest_call_s = longest_call_s
        self._child = child
        self._start_over()
        _callers.add(self)

    def call(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        patience_s: float = 10.0,
        *,
        fresh_s: float = 0.0,
    ) -> Any:
        """Return the answer of `launch.<name>(**args)`, which is plain data.

        An answer that arrived within `fresh_s` seconds is given again. SkyPilotError: SkyPilot
        refused, or can't be reached. StillBusyError: nothing within `patience_s` seconds.
        """
        flight = self._flight(name, args or {}, fresh_s)
        if not flight.wait(patience_s):
            raise StillBusyError(name)
        return flight.take()

    @contextmanager
    def stream(self, name: str, args: Mapping[str, Any] | None = None) -> Iterator[LineStream]:
        """Stream what `launch.<name>(**args)` yields, until it ends or the block is left.

        The stream's `get` raises what the call raises.
        """
        with self._lock:
            number = next(self._numbers)
            try:
                connection = self._living_connection()
            except OSError as error:
                raise _not_started(error) from error
            stream = LineStream(number, connection)
            self._streams[number] = stream
        try:
            if not connection.send(request_of(number, name, args or {})):
                stream.fail(SkyPilotError("interrupted", ENDED))
            yield stream
        finally:
            stream.close()
            with self._lock:
                self._streams.pop(number, None)
                self._used_at = time.monotonic()

    def warm_up(self) -> None:
        """Start the child now: importing SkyPilot takes it seconds. Returns at once."""
        with self._lock, suppress(OSError):
            self._used_at = time.monotonic()
            self._living_connection()

    def close(self) -> None:
        """End the child. Calls under way raise SkyPilotError; a later call starts a new child."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.end()

    @property
    def child_pid(self) -> int | None:
        """The id of the child that makes the calls now; None if there is none."""
        with self._lock:
            return self._connection.pid if self._connection is not None else None

    def _start_over(self) -> None:
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._connection = None
        self._latest = {}
        self._unanswered = {}
        self._streams = {}
        self._used_at = time.monotonic()

    def after_fork(self) -> None:
        """Start anew in a fork: the child and the calls so far are the parent's."""
        for connection in self._unanswered:
            connection.forget()
        self._start_over()

    def _flight(self, name: str, args: Mapping[str, Any], fresh_s: float) -> Flight:
        key = key_of(name, args)
        with self._lock:
            self._used_at = time.monotonic()
            self._latest = {k: one for k, one in self._latest.items() if not one.is_stale}
            flight = self._latest.get(key)
            if flight is not None and flight.serves(fresh_s):
                return flight
            number = next(self._numbers)
            flight = Flight(number, name, request_of(number, name, args))
            self._latest[key] = flight
        self._send(flight)
        return flight

    def _send(self, flight: Flight) -> None:
        """Hand the call to the child, or, if it takes no more, to a new one."""
        for _ in range(2):
            try:
                with self._lock:
                    connection = self._living_connection()
                    self._unanswered[connection][flight.number] = flight
            except OSError as error:
                flight.arrive(None, _not_started(error))
                return
            if connection.send(flight.request):
                return
            with self._lock:
                self._leave(connection)
                if self._unanswered.get(connection, {}).pop(flight.number, None) is None:
                    return  # the connection has ended meanwhile, and `on_end` sends it again
        flight.arrive(None, SkyPilotError("interrupted", ENDED))

    def _living_connection(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(self.options, self, self._child)
            self._unanswered[self._connection] = {}
        return self._connection

    def _leave(self, connection: Connection) -> None:
        if self._connection is connection:
            self._connection = None

    # --- called from the connection's thread ---

    def on_line(self, connection: Connection, line: bytes) -> None:
        """Hand an answer to the calls that wait for it."""
        try:
            message = json.loads(line)
            number = int(message["id"])
        except (ValueError, TypeError, KeyError):
            log.warning("not an answer: %.200r", line, extra={"action": "sky"})
            return
        with self._lock:
            flight = self._unanswered[connection].get(number)
            stream = self._streams.get(number)
        if stream is not None:
            stream.on_message(message)
        elif flight is not None:
            self._on_message(connection, flight, message)

    def _on_message(self, connection: Connection, flight: Flight, message: dict[str, Any]) -> None:
        if message.get("taken"):
            flight.is_taken_on = True
            return
        error: SkyPilotError | StillBusyError | None = None
        if message.get("busy"):
            error = StillBusyError(flight.name)
        elif message.get("error"):
            error = SkyPilotError.from_dict(message["error"])
        flight.arrive(message.get("value"), error)
        with self._lock:
            self._unanswered[connection].pop(flight.number, None)
            self._used_at = time.monotonic()

    def on_tick(self, connection: Connection) -> None:
        """End what is idle, and give up what hangs."""
        now = time.monotonic()
        with self._lock:
            unanswered = self._unanswered[connection]
            hanging = [
                one for one in unanswered.values() if now - one.began_at > self._longest_call_s
            ]
            if hanging:
                # A thread can't be ended, so its process ends: once nothing else depends on it.
                self._leave(connection)
                for flight in hanging:
                    del unanswered[flight.number]
            streams = [one for one in self._streams.values() if one.connection is connection]
            is_in_use = bool(unanswered or streams)
            if not is_in_use and now - self._used_at > self._idle_s:
                self._leave(connection)
            ends = not is_in_use and self._connection is not connection
        for flight in hanging:
            message = f"SkyPilot did not answer for {self._longest_call_s:.0f} s; given up."
            flight.arrive(None, SkyPilotError("interrupted", message))
        if ends:
            connection.end()

    def on_end(self, connection: Connection, code: int) -> None:
        """Send again what the child never read; the other open calls fail."""
        with self._lock:
            self._leave(connection)
            unanswered = self._unanswered.pop(connection, {})
            streams = [one for one in self._streams.values() if one.connection is connection]
        if unanswered or streams:
            log.warning("SkyPilot's process ended", extra={"action": "sky", "exit_code": code})
        for stream in streams:
            stream.fail(SkyPilotError("interrupted", ENDED))
        for flight in unanswered.values():
            if flight.is_taken_on:
                flight.arrive(None, SkyPilotError("interrupted", ENDED))
            else:
                # At most once more: a child that dies unread twice won't read a third time.
                flight.is_taken_on = True
                self._send(flight)


def _not_started(error: OSError) -> SkyPilotError:
    message = f"The process that asks SkyPilot can't be started: {error}"
    return SkyPilotError("server_away", message)


_callers: weakref.WeakSet[SkyCaller] = weakref.WeakSet()


def _after_fork() -> None:
    for caller in list(_callers):
        caller.after_fork()


os.register_at_fork(after_in_child=_after_fork)
