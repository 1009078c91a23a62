"""The context of a task: each call is a request to the driver, on a connection of its thread."""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from monarch_client.attaching.unix_sockets import connect_to
from monarch_client.context.api import TaskApi, stored_codes, timed_out
from monarch_client.context.code_cache import CodeCache
from monarch_client.context.current import get_job_context
from monarch_client.context.errors import ContextClosedError
from monarch_client.context.ids import holder_of
from monarch_client.context.objects import StoreClient
from monarch_client.context.running_call import calling
from monarch_client.context.values import ERROR, LARGEST_INLINE, Payload, error_of
from monarch_client.context.watching import OnReady, Watches
from monarch_client.context.wire import (
    Await,
    Call,
    Cancel,
    FindActor,
    FrameReader,
    Held,
    Hello,
    NewActor,
    Put,
    Reply,
    StopWaiting,
    frame,
)

# Of references of this process: one more, one that the driver counts already, one less.
_KEPT, _CREATED, _DROPPED = 1, 2, -1
# Sockets count milliseconds in 32 bits; a longer wait has no end.
_LONGEST_TIMEOUT_S = 2_000_000


class TaskContext(TaskApi):
    """The driver's context, as its tasks see it."""

    def __init__(self, executor: int, address: str, store_address: str = "") -> None:
        self._executor = executor
        self._address = address
        self._store_address = store_address
        self._threads = threading.local()
        # Appended to without a lock, by garbage collection as well.
        self._events: deque[tuple[int, bytes]] = deque()
        self._counts: dict[bytes, int] = {}
        # References that the driver counts for this process: how often.
        self._held: dict[bytes, int] = {}
        # As the driver has reported last.
        self.largest_inline = LARGEST_INLINE
        self.codes: CodeCache[bytes] = stored_codes()
        # Called after each drop, by garbage collection as well.
        self.on_drop: Callable[[], None] = _ignore
        self._store_client: StoreClient | None = None
        self._connecting = threading.Lock()
        self._watches: Watches | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return own_context, ()

    def keep(self, ref: bytes) -> None:
        """Count one more reference to `ref` in this process."""
        self._events.append((_KEPT, ref))

    def drop(self, ref: bytes) -> None:
        """Count one less."""
        self._events.append((_DROPPED, ref))
        self.on_drop()

    @property
    def inline_limit(self) -> int:
        """The bytes of the largest value that may be inside of a message."""
        return self.largest_inline

    @property
    def _objects(self) -> StoreClient | None:
        if not self._store_address:
            return None
        with self._connecting:
            if self._store_client is None:
                self._store_client = StoreClient.connect(self._store_address)
            return self._store_client

    @property
    def _owner(self) -> int:
        return holder_of(self._executor)

    def changes(self) -> Held:
        """Return what this process holds now and did not before, and the reverse. One at a time."""
        touched: dict[bytes, None] = {}
        while self._events:
            event, ref = self._events.popleft()
            touched[ref] = None
            self._counts[ref] = self._counts.get(ref, 0) + (1 if event > 0 else -1)
            if event == _CREATED:
                self._held[ref] = self._held.get(ref, 0) + 1
        kept = [ref for ref in touched if self._counts[ref] > 0 and ref not in self._held]
        self._held.update(dict.fromkeys(kept, 1))
        dropped: list[bytes] = []
        for ref in touched:
            if self._counts[ref] <= 0:
                del self._counts[ref]
                # As often as the driver counts it: it may count it once more meanwhile.
                dropped += [ref] * self._held.pop(ref, 0)
        return Held(kept, dropped)

    def _submit(self, call: Call) -> None:
        # Before the request: an interrupt may arrive once the driver counts the reference.
        self._events.append((_CREATED, call.id))
        call.parent = calling()
        self._request(call)

    def _submit_actor(self, actor: NewActor) -> bytes:
        reply = self._request(actor)
        self._events.append((_CREATED, reply.actor))
        return reply.actor

    def _find_actor(self, name: str) -> bytes:
        reply = self._request(FindActor(name))
        self._events.append((_CREATED, reply.actor))
        return reply.actor

    def _put(self, ref: bytes, payload: Payload) -> None:
        self._events.append((_CREATED, ref))
        self._request(Put(ref, payload))

    def _cancel(self, ref: bytes, *, recursive: bool) -> None:
        self._request(Cancel(ref, recursive))

    def _watch(self, ref: bytes, on_ready: OnReady) -> Callable[[], None]:
        with self._connecting:
            if self._watches is None or self._watches.pid != os.getpid():
                self._watches = Watches(self._connected)
        return self._watches.add(ref, on_ready)

    def _values(self, ids: list[bytes], timeout: float | None) -> list[Payload]:
        reply = self._request(Await(ids, len(ids), values=True), timeout)
        failed = any(each.kind == ERROR for each in reply.values)
        if len(reply.values) < len(ids) and not failed and timeout is not None:
            raise timed_out(len(ids) - len(reply.values), timeout)
        return reply.values

    def _ready(self, ids: list[bytes], count: int, timeout: float | None) -> set[bytes]:
        return set(self._request(Await(ids, count, values=False), timeout).ready)

    def _request(self, message: msgspec.Struct, timeout: float | None = None) -> Reply:
        """Send a request and wait for its answer; raise the error in it."""
        connection, reader = self._connection()
        try:
            connection.sendall(frame(message))
            reply = self._answer(connection, reader, timeout)
        except (EOFError, ConnectionError) as error:
            self._threads.connection = None
            raise ContextClosedError("The driver has closed the context.") from error
        except BaseException:
            # Interrupted: the answer to this request must not be taken for that of the next one.
            self._threads.connection = None
            connection.close()
            raise
        self.largest_inline = reply.inline_limit
        if reply.error is not None:
            raise error_of(reply.error, self)
        return reply

    def _answer(
        self, connection: socket.socket, reader: FrameReader[Reply], timeout: float | None
    ) -> Reply:
        if timeout is None or timeout > _LONGEST_TIMEOUT_S:
            return _next_reply(reader)
        connection.settimeout(max(timeout, 1e-6))
        try:
            return _next_reply(reader)
        except TimeoutError:
            connection.settimeout(None)
            connection.sendall(frame(StopWaiting()))
            return _next_reply(reader)
        finally:
            # Else the next request, which may be large, would have the time-out of this one.
            connection.settimeout(None)

    def _connection(self) -> tuple[socket.socket, FrameReader[Reply]]:
        """Return this thread's connection; a forked process makes its own."""
        found: tuple[int, socket.socket, FrameReader[Reply]] | None
        found = getattr(self._threads, "connection", None)
        if found is not None and found[0] == os.getpid():
            return found[1], found[2]
        connection, reader = self._connected()
        self._threads.connection = (os.getpid(), connection, reader)
        return connection, reader

    def _connected(self) -> tuple[socket.socket, FrameReader[Reply]]:
        """Open a connection to the driver. ContextClosedError: it has closed the context."""
        try:
            connection = connect_to(self._address)
            connection.sendall(frame(Hello(self._executor)))
        except (ConnectionError, FileNotFoundError) as error:
            raise ContextClosedError("The driver has closed the context.") from error
        return connection, FrameReader(connection, Reply)


def _ignore() -> None:
    pass


def own_context() -> TaskApi:
    """Return the context of the process that unpickles one."""
    return get_job_context()


def _next_reply(reader: FrameReader[Reply]) -> Reply:
    while True:
        for reply in reader.read():
            return reply
