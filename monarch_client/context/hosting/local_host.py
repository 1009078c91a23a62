"""The processes of this host, and the sockets to them."""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

import monarch_client
from monarch_client.attaching.unix_sockets import listen_in, peer_of
from monarch_client.context.errors import ContextError
from monarch_client.context.hosting.link import HostEvents
from monarch_client.context.hosting.loop import Loop, Outbox
from monarch_client.context.wire import FROM_ZYGOTE, Ended, Fork, InFile, Kill, Ready, Setup

_Descriptor = socket.socket | BinaryIO

_LARGEST_MESSAGE = 1 << 16
_END_S = 5.0
# The time until a descriptor may be free again, and the errors of too many of them on their way.
_RETRY_S = 0.05
_TEMPORARY = frozenset((errno.ETOOMANYREFS, errno.ENOBUFS, errno.ENOMEM))
_MOST_STARTS = 3
_BACKLOG = 512
_SOCKET = "tasks"
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


class _DelayedFork:
    """An executor that waits for descriptors, and what it was sent."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.calls = bytearray()
        self.control = bytearray()


class LocalHost:
    """The executors of this host, their zygote, and the listener for their tasks."""

    def __init__(self, loop: Loop, events: HostEvents, store_address: str) -> None:
        """Start the zygote. The listener is in the private folder of the store's socket."""
        self._loop = loop
        self._events = events
        self._sockets = Path(store_address).parent
        self._store_address = store_address
        self._listener = listen_in(self._sockets, _SOCKET, _BACKLOG)
        self._calls: dict[int, Stream] = {}
        self._controls: dict[int, Stream] = {}
        self._connections: dict[int, Stream] = {}
        self._delayed: dict[int, _DelayedFork] = {}
        self._accepted = 0
        # Requests that the zygote has not taken: it may still be starting.
        self._unsent: deque[tuple[bytes, list[_Descriptor]]] = deque()
        self._decoder: msgspec.msgpack.Decoder[Ready | Ended] = msgspec.msgpack.Decoder(FROM_ZYGOTE)
        self._is_zygote_ready = False
        self._failed_starts = 0
        raise_descriptor_limit()
        self._process, self._zygote = _started_zygote()
        self._loop.add(self._listener, self._accept)
        self._set_up_zygote()

    @property
    def pid(self) -> int:
        """The process id of the zygote."""
        return self._process.pid

    def fork(self, executor: int, env: Mapping[str, str]) -> None:
        """Start an executor: later, if this process has too many open files."""
        try:
            self._fork(executor, env)
        except OSError:
            self._delayed[executor] = _DelayedFork(env)
            self._loop.call_later(_RETRY_S, lambda: self._fork_again(executor))

    def _fork_again(self, executor: int) -> None:
        if delayed := self._delayed.pop(executor, None):
            try:
                self._fork(executor, delayed.env)
            except OSError:
                self._delayed[executor] = delayed
                self._loop.call_later(_RETRY_S, lambda: self._fork_again(executor))
                return
            self.send(executor, bytes(delayed.calls))
            self.control(executor, bytes(delayed.control))

    def _fork(self, executor: int, env: Mapping[str, str]) -> None:
        sockets = [*socket.socketpair()]
        try:
            sockets += socket.socketpair()
            request, files = self._encoded(Fork(executor, dict(env)))
        except OSError:
            for each in sockets:
                each.close()
            raise
        calls, their_calls, control, their_control = sockets
        self._calls[executor] = Stream(self._loop, calls, lambda: self._read_calls(executor))
        self._controls[executor] = Stream(self._loop, control, lambda: None)
        self._request(request, [*files, their_calls, their_control])

    def send(self, executor: int, data: bytes) -> None:
        """Send calls to an executor."""
        if stream := self._calls.get(executor):
            stream.send(data)
        elif delayed := self._delayed.get(executor):
            delayed.calls += data

    def control(self, executor: int, data: bytes) -> None:
        """Send a request about calls to an executor."""
        if stream := self._controls.get(executor):
            stream.send(data)
        elif delayed := self._delayed.get(executor):
            delayed.control += data

    def end(self, executor: int) -> None:
        """Let an executor end after the calls that it was sent."""
        if self._delayed.get(executor):
            self._forget_delayed(executor, 0)
        for streams in (self._controls, self._calls):
            if stream := streams.get(executor):
                stream.close()

    def kill(self, executor: int) -> None:
        """Kill an executor, with the processes that it started."""
        if self._delayed.get(executor):
            self._forget_delayed(executor, -signal.SIGKILL)
        else:
            self._request(*self._encoded(Kill(executor)))

    def _forget_delayed(self, executor: int, status: int) -> None:
        """Report the end of an executor that was never forked."""
        del self._delayed[executor]
        # Not at once: the driver is in the midst of a change.
        self._loop.call_later(0, lambda: self._events.on_ended(executor, status))

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
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:
            # Too many open files: the connection waits until some are closed.
            self._loop.rest(self._listener, _RETRY_S)
            return
        if peer_of(connection).uid != os.getuid():
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
            path=[os.fsencode(each or Path.cwd()) for each in sys.path],
            folder=os.fsencode(Path.cwd()),
            argv=[os.fsencode(str(each)) for each in sys.argv],
            modules=[name for name in _PRELOADED if name in sys.modules],
            address=os.fsencode(self._sockets / _SOCKET),
            store_address=os.fsencode(self._store_address),
        )
        self._loop.add(self._zygote, self._read_zygote)
        self._request(*self._encoded(setup))

    def _encoded(self, message: msgspec.Struct) -> tuple[bytes, list[_Descriptor]]:
        """Encode a request, with a file of it if it is too large for the socket."""
        data = msgspec.msgpack.encode(message)
        if len(data) <= _LARGEST_MESSAGE:
            return data, []
        file = os.fdopen(os.memfd_create("request"), "w+b")
        file.write(data)
        file.flush()
        return msgspec.msgpack.encode(InFile()), [file]

    def _request(self, data: bytes, descriptors: list[_Descriptor]) -> None:
        self._unsent.append((data, descriptors))
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        """Send requests to the zygote as far as it takes them."""
        while self._unsent:
            data, descriptors = self._unsent[0]
            try:
                socket.send_fds(self._zygote, [data], [each.fileno() for each in descriptors])
            except BlockingIOError:
                self._loop.expect_room(self._zygote, self._flush)
                return
            except (BrokenPipeError, ConnectionResetError):
                return  # its end is noticed by reading
            except OSError as error:
                if error.errno not in _TEMPORARY:
                    raise
                self._loop.call_later(_RETRY_S, self._flush)
                return
            self._unsent.popleft()
            for each in descriptors:
                each.close()
        self._loop.expect_room(self._zygote, None)

    def _forget_unsent(self) -> None:
        for _, descriptors in self._unsent:
            for each in descriptors:
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
        else:
            self._is_zygote_ready, self._failed_starts = True, 0

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
        """Start another zygote after the end of this one, which has ended its executors.

        ContextError: three in a row have failed before they were ready.
        """
        self._loop.remove(self._zygote)
        status = self._process.wait()
        self._forget_unsent()
        if not self._is_zygote_ready and status != -signal.SIGKILL:
            self._failed_starts += 1
            if self._failed_starts == _MOST_STARTS:
                raise ContextError(
                    f"The process that forks the executors failed {_MOST_STARTS} times while it"
                    f" started, with status {status}. Its standard error says why."
                )
        self._is_zygote_ready = False
        lost = list(self._calls)
        self._process, self._zygote = _started_zygote()
        self._set_up_zygote()
        for executor in lost:
            self._report_end(executor, -signal.SIGKILL)


def raise_descriptor_limit() -> None:
    """Let this process have as many open files as it may: each executor takes two."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


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
