"""The connections of tasks: each is a thread of an executor, which sends one request at a time."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from monarch_client.context.driver.executors import Executor
from monarch_client.context.driver.loop import Loop, Outbox
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.waiter import Waiter
from monarch_client.context.values import Payload, error_payload
from monarch_client.context.wire import (
    FROM_TASK,
    Await,
    Call,
    Cancel,
    FrameReader,
    Hello,
    NewActor,
    Put,
    Reply,
    StopWaiting,
    frame,
)

_BACKLOG = 512
_CREDENTIALS = struct.Struct("3i")
_Request = Hello | Call | NewActor | Await | StopWaiting | Put | Cancel


class Requests(Protocol):
    """The requests of tasks to the driver; each runs with the driver's lock."""

    def find_executor(self, number: int) -> Executor | None:
        """Return an executor that has not ended."""

    def submit(self, call: Call, executor: Executor | None) -> None:
        """Take a call; its result is held by the executor."""

    def create_actor(self, new: NewActor, executor: Executor | None) -> bytes:
        """Take an actor, or find it; its handle is held by the executor."""

    def put(self, ref: bytes, payload: Payload, executor: Executor | None) -> None:
        """Take an object that is held by the executor."""

    def cancel(self, ref: bytes) -> None:
        """Cancel a call."""

    def pause(self, executor: Executor, *, waits: bool) -> None:
        """Note that a thread of the executor begins or ceases to wait for others."""


class TaskConnections:
    """The listener of one driver, and the connections that it has accepted."""

    def __init__(self, loop: Loop, objects: ObjectTable, requests: Requests, address: str) -> None:
        self._loop = loop
        self._objects = objects
        self._requests = requests
        self._connections: set[TaskConnection] = set()
        # An abstract address: the kernel removes it with this process.
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"\0{address}")
        self._listener.listen(_BACKLOG)

    def start(self) -> None:
        """Accept connections."""
        self._loop.add(self._listener, self._accept)

    def close(self) -> None:
        """Close all connections."""
        self._listener.close()
        for each in list(self._connections):
            each.connection.close()

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            connection, _ = self._listener.accept()
            if _user_of(connection) != os.getuid():
                connection.close()
                return
            made = TaskConnection(connection, self._loop, self._objects, self._requests)
            self._connections.add(made)
            self._loop.add(connection, lambda: made.read(self._connections.discard))


class TaskConnection:
    """One thread of a task."""

    def __init__(
        self, connection: socket.socket, loop: Loop, objects: ObjectTable, requests: Requests
    ) -> None:
        self.connection = connection
        self._loop = loop
        self._objects = objects
        self._requests = requests
        self._outbox = Outbox(loop, connection)
        self._reader: FrameReader[_Request] = FrameReader(connection, FROM_TASK)
        self._executor: Executor | None = None
        self._waiter: Waiter | None = None
        self._wants_values = False

    def read(self, on_closed: Callable[[TaskConnection], None]) -> None:
        """Handle the requests that have arrived."""
        try:
            for request in self._reader.read():
                self._handle(request)
        except EOFError:
            self._end_wait()
            self._loop.remove(self.connection)
            on_closed(self)
        except BlockingIOError:
            pass

    def _handle(self, request: _Request) -> None:
        if isinstance(request, Hello):
            self._executor = self._requests.find_executor(request.executor)
            if self._executor is None:
                # Killed since: nothing would ever release what its requests make.
                raise EOFError
            return
        if isinstance(request, StopWaiting):
            if self._waiter is not None:
                self._waiter.stop()
                self._answer_wait()
            return
        try:
            reply = self._answer(request)
        except Exception as error:  # noqa: BLE001 - the task that made the request gets it
            reply = Reply(error=error_payload(error))
        if reply is not None:
            self._outbox.send(frame(reply))

    def _answer(self, request: Call | NewActor | Await | Put | Cancel) -> Reply | None:
        if isinstance(request, Await):
            return self._begin_wait(request)
        if isinstance(request, Call):
            self._requests.submit(request, self._executor)
        elif isinstance(request, NewActor):
            return Reply(actor=self._requests.create_actor(request, self._executor))
        elif isinstance(request, Put):
            self._requests.put(request.id, request.payload, self._executor)
        else:
            self._requests.cancel(request.id)
        return Reply()

    def _begin_wait(self, request: Await) -> Reply | None:
        self._wants_values = request.values
        waiter = Waiter(
            self._objects,
            request.ids,
            request.count,
            values=request.values,
            on_done=self._answer_wait,
        )
        if waiter.is_done:
            return self._reply(waiter)
        self._waiter = waiter
        if self._executor is not None:
            self._requests.pause(self._executor, waits=True)
        return None

    def _answer_wait(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._end_wait()
            self._outbox.send(frame(self._reply(waiter)))

    def _end_wait(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.stop()
            if self._executor is not None:
                self._requests.pause(self._executor, waits=False)

    def _reply(self, waiter: Waiter) -> Reply:
        if self._wants_values:
            return Reply(values=waiter.values())
        return Reply(ready=waiter.ready())


def _user_of(connection: socket.socket) -> int:
    """Return the user of the process at the other end."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(data)[1])
