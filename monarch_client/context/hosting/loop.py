"""A thread that waits for sockets. Any thread may change the driver's state with the lock."""

from __future__ import annotations

import heapq
import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from monarch_client.context.hosting.uninterrupted import UninterruptedLock

log = logging.getLogger("monarch_client.context")
# What an idle program has dropped is released that late: `drop` takes no lock, and wakes nothing.
_LONGEST_S = 0.2
_RECEIVED_AT_ONCE = 1 << 18
Callback = Callable[[], None]


class Loop:
    """The sockets and timers of one context. Callbacks run with the lock, and must not block."""

    def __init__(self, settle: Callback, on_failure: Callable[[Exception], None]) -> None:
        """Make a loop; `settle` runs after each round of callbacks."""
        self.lock = UninterruptedLock()
        self.received = memoryview(bytearray(_RECEIVED_AT_ONCE))
        self._settle = settle
        self._on_failure = on_failure
        self._selector = selectors.DefaultSelector()
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wake_fd, selectors.EVENT_READ, self._woken)
        self._timers: list[tuple[float, int, Callback]] = []
        self._made = 0
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="task context")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        with self.lock:
            self._is_closed = True
        self.wake()
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._selector.close()
        os.close(self._wake_fd)

    def add(self, connection: socket.socket, on_ready: Callback) -> None:
        """Call `on_ready` whenever the socket can be read."""
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_READ, on_ready)

    def remove(self, connection: socket.socket) -> None:
        """Close a socket."""
        with suppress(KeyError, ValueError):
            self._selector.unregister(connection)
        connection.close()

    def rest(self, connection: socket.socket, seconds: float) -> None:
        """Ignore a socket for that time."""
        key = self._selector.unregister(connection)

        def resume() -> None:
            if connection.fileno() >= 0:
                self._selector.register(connection, key.events, key.data)

        self.call_later(seconds, resume)

    def call_later(self, seconds: float, callback: Callback) -> None:
        """Call `callback` after that time."""
        self._made += 1
        heapq.heappush(self._timers, (time.monotonic() + seconds, self._made, callback))
        self.wake()

    def run(self, callback: Callback) -> None:
        """Run a callback of another thread as one of this loop's."""
        with self.lock:
            if not self._is_closed:
                callback()
                self._settle()

    def wake(self) -> None:
        """Let the thread look at its timers."""
        os.eventfd_write(self._wake_fd, 1)

    def expect_room(self, connection: socket.socket, on_room: Callback | None) -> None:
        """Call `on_room` as well once the socket can be written; None ends that."""
        key = self._selector.get_key(connection)
        reading = key.data[0] if isinstance(key.data, tuple) else key.data
        if on_room is None:
            self._selector.modify(connection, selectors.EVENT_READ, reading)
        else:
            both = selectors.EVENT_READ | selectors.EVENT_WRITE
            self._selector.modify(connection, both, (reading, on_room))

    def _run(self) -> None:
        try:
            while not self._is_closed:
                self._round(self._selector.select(self._pause()))
        except Exception as error:  # whatever it is, nothing may wait for this thread for ever
            log.exception("The thread of the task context failed; the context is closed.")
            with self.lock:
                self._on_failure(error)

    def _round(self, events: list[tuple[selectors.SelectorKey, int]]) -> None:
        with self.lock.plain:
            for key, mask in events:
                self._dispatch(key, mask)
            if self._timers:
                self._expire()
            if not self._is_closed:
                self._settle()

    def _dispatch(self, key: selectors.SelectorKey, mask: int) -> None:
        # A callback before may have removed it, and another socket may have its number.
        now = self._selector.get_map().get(key.fd)
        if self._is_closed or now is None or now.fileobj is not key.fileobj:
            return
        data: Any = key.data
        reading, writing = data if isinstance(data, tuple) else (data, None)
        if mask & selectors.EVENT_WRITE and writing is not None:
            writing()
        if mask & selectors.EVENT_READ:
            reading()

    def _pause(self) -> float:
        if not self._timers:
            return _LONGEST_S
        with self.lock.plain:
            if not self._timers:
                return _LONGEST_S
            return min(_LONGEST_S, max(0.0, self._timers[0][0] - time.monotonic()))

    def _expire(self) -> None:
        while self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2]()

    def _woken(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake_fd)


class Outbox:
    """The messages to one socket, sent at once as far as it takes them."""

    def __init__(self, loop: Loop, connection: socket.socket) -> None:
        self._loop = loop
        self._connection = connection
        self._rest = bytearray()

    def send(self, data: bytes) -> None:
        """Send bytes, or keep what the socket does not take yet. A closed peer gets nothing."""
        if self._rest:
            self._rest += data
            return
        sent = self._send(data)
        if sent < len(data):
            self._rest += memoryview(data)[sent:]
            self._loop.expect_room(self._connection, self._flush)

    def _flush(self) -> None:
        del self._rest[: self._send(self._rest)]
        if not self._rest:
            self._loop.expect_room(self._connection, None)

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self._connection.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            # Its end is noticed by reading.
            return len(data)
