"""The processes of this host, and the sockets to them."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

import monarch_client
from monarch_client.context.hosting.link import HostEvents
from monarch_client.context.hosting.loop import Loop, Outbox
from monarch_client.context.wire import FROM_ZYGOTE, Ended, Fork, Kill, Ready, Setup

_LARGEST_MESSAGE = 1 << 16
_END_S = 5.0
_BACKLOG = 512
_CREDENTIALS = struct.Struct("3i")
# Imported once by the zygote if this process has imported them: each takes long to import.
_PRELOADED = ("numpy",)
_START = "from monarch_client.context.zygote import main; main()"


class Stream:
    """A socket to one process."""

    def __init__(self, loop: Loop, connection: socket.socket, on_ready: Callable[[], None]) -> None:
        self._loop = loop
        self.connection = connection
        self._outbox = Outbox(loop, connection)
        # One buffer for all streams of a loop: to make one for each message takes longer.
        self._received = loop.received
        loop.add(connection, on_ready)

    def send(self, data: bytes) -> None:
        """Send bytes, now or once the process takes them."""
        self._outbox.send(data)

    def receive(self) -> bytes | None:
        """Return what has arrived; b"" at its end, None if nothing has."""
        try:
            size = self.connection.recv_into(self._received)
        except BlockingIOError:
            return None
        except OSError:
            return b""
        return bytes(self._received[:size])

    def close(self) -> None:
        """Close the socket."""
        self._loop.remove(self.connection)


class LocalHost:
    """The executors of this host, their zygote, and the listener for their tasks."""

    def __init__(self, loop: Loop, events: HostEvents, store_address: str = "") -> None:
        self._loop = loop
        self._events = events
        # An abstract address: the kernel removes it with this process.
        self._address = f"monarch-context-{secrets.token_hex(16)}"
        self._store_address = store_address
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"\0{self._address}")
        self._listener.listen(_BACKLOG)
        self._calls: dict[int, Stream] = {}
        self._controls: dict[int, Stream] = {}
        self._connections: dict[int, Stream] = {}
        self._accepted = 0
        # Requests that the zygote has not taken: it may still be starting.
        self._unsent: deque[tuple[bytes, list[socket.socket]]] = deque()
        self._decoder: msgspec.msgpack.Decoder[Ready | Ended] = msgspec.msgpack.Decoder(FROM_ZYGOTE)
        self._process, self._zygote = _started_zygote()
        self._loop.add(self._listener, self._accept)
        self._set_up_zygote()

    @property
    def pid(self) -> int:
        """The process id of the zygote."""
        return self._process.pid

    def fork(self, executor: int, env: Mapping[str, str]) -> None:
        """Start an executor."""
        calls, their_calls = socket.socketpair()
        control, their_control = socket.socketpair()
        self._calls[executor] = Stream(self._loop, calls, lambda: self._read_calls(executor))
        self._controls[executor] = Stream(self._loop, control, lambda: None)
        self._request(Fork(executor, dict(env)), [their_calls, their_control])

    def send(self, executor: int, data: bytes) -> None:
        """Send calls to an executor."""
        if stream := self._calls.get(executor):
            stream.send(data)

    def control(self, executor: int, data: bytes) -> None:
        """Send a request about calls to an executor."""
        if stream := self._controls.get(executor):
            stream.send(data)

    def end(self, executor: int) -> None:
        """Let an executor end after the calls that it was sent."""
        for streams in (self._controls, self._calls):
            if stream := streams.get(executor):
                stream.close()

    def kill(self, executor: int) -> None:
        """Kill an executor, with the processes that it started."""
        self._request(Kill(executor))

    def reply(self, connection: int, data: bytes) -> None:
        """Send an answer on a task's connection."""
        if stream := self._connections.get(connection):
            stream.send(data)

    def disconnect(self, connection: int) -> None:
        """Close a task's connection."""
        if stream := self._connections.pop(connection, None):
            stream.close()

    def close(self) -> None:
        """End all processes, and wait for that."""
        self._zygote.close()
        self._listener.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._forget_unsent()
        for streams in (self._calls, self._controls, self._connections):
            for stream in streams.values():
                stream.connection.close()

    def _read_calls(self, executor: int) -> None:
        stream = self._calls[executor]
        data = stream.receive()
        if data:
            self._events.on_calls(executor, data)
        elif data is not None:
            # It has closed its end; the zygote reports how it ended.
            self.end(executor)

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            connection, _ = self._listener.accept()
            if _user_of(connection) != os.getuid():
                connection.close()
                return
            self._accepted += 1
            number = self._accepted
            self._connections[number] = Stream(
                self._loop, connection, lambda: self._read_connection(number)
            )

    def _read_connection(self, connection: int) -> None:
        stream = self._connections[connection]
        data = stream.receive()
        if data:
            self._events.on_request(connection, data)
        elif data is not None:
            self.disconnect(connection)
            self._events.on_disconnected(connection)

    def _set_up_zygote(self) -> None:
        """Let the zygote become like this process."""
        setup = Setup(
            path=[each or str(Path.cwd()) for each in sys.path],
            folder=str(Path.cwd()),
            argv=sys.argv,
            modules=[name for name in _PRELOADED if name in sys.modules],
            address=self._address,
            store_address=self._store_address,
        )
        self._loop.add(self._zygote, self._read_zygote)
        self._request(setup)

    def _request(self, message: msgspec.Struct, sockets: list[socket.socket] | None = None) -> None:
        self._unsent.append((msgspec.msgpack.encode(message), sockets or []))
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        """Send requests to the zygote as far as it takes them."""
        while self._unsent:
            data, sockets = self._unsent[0]
            try:
                socket.send_fds(self._zygote, [data], [each.fileno() for each in sockets])
            except BlockingIOError:
                self._loop.expect_room(self._zygote, self._flush)
                return
            except OSError:
                return  # its end is noticed by reading
            self._unsent.popleft()
            for each in sockets:
                each.close()
        self._loop.expect_room(self._zygote, None)

    def _forget_unsent(self) -> None:
        for _, sockets in self._unsent:
            for each in sockets:
                each.close()
        self._unsent.clear()

    def _read_zygote(self) -> None:
        try:
            data = self._zygote.recv(_LARGEST_MESSAGE)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._replace_zygote()
            return
        message = self._decoder.decode(data)
        if isinstance(message, Ended):
            self._report_end(message.number, message.status)

    def _report_end(self, executor: int, status: int) -> None:
        stream = self._calls.pop(executor, None)
        if stream is None:
            return
        # What it sent before its end counts. `receive` returns b"" of a closed socket as well.
        while data := stream.receive():
            self._events.on_calls(executor, data)
        stream.close()
        self._controls.pop(executor).close()
        self._events.on_ended(executor, status)

    def _replace_zygote(self) -> None:
        """Start another zygote after the end of this one, which has ended its executors."""
        self._loop.remove(self._zygote)
        self._process.wait()
        self._forget_unsent()
        lost = list(self._calls)
        self._process, self._zygote = _started_zygote()
        self._set_up_zygote()
        for executor in lost:
            self._report_end(executor, -signal.SIGKILL)


def _started_zygote() -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    driver = os.pidfd_open(os.getpid())
    own = str(Path(monarch_client.__path__[0]).parent)
    path = os.pathsep.join(filter(None, [own, os.environ.get("PYTHONPATH", "")]))
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": path}
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(theirs.fileno()), str(driver)],
            # The user's folder has modules of any name; the zygote goes there once it runs.
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno(), driver],
            start_new_session=True,
        )
    finally:
        theirs.close()
        os.close(driver)
    return process, ours


def _user_of(connection: socket.socket) -> int:
    """Return the user of the process at the other end."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(data)[1])
