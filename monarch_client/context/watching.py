"""The objects that coroutines of a task await: one connection for all, which a thread reads."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from monarch_client.context.errors import ContextClosedError
from monarch_client.context.values import Payload, error_payload
from monarch_client.context.wire import FrameReader, Reply, Unwatch, Watch, frame

OnReady = Callable[[Payload], None]
Connection = tuple[socket.socket, FrameReader[Reply]]
_CLOSED = "The driver has closed the context."


class Watches:
    """The awaits of one process, by the ids of their objects. A forked process makes its own."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        """Wait for nothing yet. `connect` opens a connection; ContextClosedError: it cannot."""
        self.pid = os.getpid()
        self._connect = connect
        self._lock = threading.Lock()
        self._waiting: dict[bytes, list[OnReady]] = {}
        self._connection: socket.socket | None = None

    def add(self, ref: bytes, on_ready: OnReady) -> Callable[[], None]:
        """Call `on_ready` in the thread once an object is ready; return what ends that."""
        with self._lock:
            connection = self._connection or self._opened()
            is_first = ref not in self._waiting
            self._waiting.setdefault(ref, []).append(on_ready)
            if is_first:
                with suppress(OSError):  # the thread reports its end
                    connection.sendall(frame(Watch(ref)))
        return partial(self._remove, ref, on_ready)

    def _remove(self, ref: bytes, on_ready: OnReady) -> None:
        with self._lock:
            waiting = self._waiting.get(ref, [])
            if on_ready not in waiting:
                return  # it was called
            waiting.remove(on_ready)
            if not waiting:
                del self._waiting[ref]
                if self._connection is not None:
                    with suppress(OSError):
                        self._connection.sendall(frame(Unwatch(ref)))

    def _opened(self) -> socket.socket:
        connection, reader = self._connect()
        self._connection = connection
        thread = threading.Thread(target=self._read, args=(reader,), daemon=True, name="awaits")
        thread.start()
        return connection

    def _read(self, reader: FrameReader[Reply]) -> None:
        with suppress(EOFError, OSError):
            while True:
                for reply in reader.read():
                    self._settle(reply.ready[0], reply.error or reply.values[0])
        with self._lock:
            self._connection = None
            waiting = list(self._waiting)
        for ref in waiting:
            self._settle(ref, error_payload(ContextClosedError(_CLOSED)))

    def _settle(self, ref: bytes, payload: Payload) -> None:
        with self._lock:
            callbacks = self._waiting.pop(ref, [])
        for on_ready in callbacks:
            on_ready(payload)
