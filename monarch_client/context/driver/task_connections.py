"""The connections of tasks: each is a thread of an executor, which sends one request at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

import msgspec

from monarch_client.context.driver.executors import Executor
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.driver.waiter import Waiter
from monarch_client.context.errors import ContextError
from monarch_client.context.hosting.link import HostLink
from monarch_client.context.values import Payload, error_payload
from monarch_client.context.wire import (
    FROM_TASK,
    Await,
    Call,
    Cancel,
    FindActor,
    FrameBuffer,
    Hello,
    NewActor,
    Put,
    Reply,
    StopWaiting,
    Unwatch,
    Watch,
    frame,
)

log = logging.getLogger("monarch_client.context")
_Answered = Call | NewActor | FindActor | Await | Put | Cancel
_Request = Hello | StopWaiting | Watch | Unwatch | _Answered


class Requests(Protocol):
    """The requests of tasks to the driver; each runs with the driver's lock."""

    def find_executor(self, number: int) -> Executor | None:
        """Return an executor that has not ended."""

    def submit(self, call: Call, executor: Executor | None) -> None:
        """Take a call; its result is held by the executor."""

    def find_actor(self, name: str, executor: Executor | None) -> bytes:
        """Find an actor by its name; return its id."""

    def create_actor(self, new: NewActor, executor: Executor | None) -> bytes:
        """Take an actor, or find it; its handle is held by the executor."""

    def put(self, ref: bytes, payload: Payload, executor: Executor | None) -> None:
        """Take an object that is held by the executor."""

    def cancel(self, ref: bytes, *, recursive: bool) -> None:
        """Cancel a call, and with `recursive` those that it has made."""

    def pause(self, executor: Executor, *, waits: bool) -> None:
        """Note that a thread of the executor begins or ceases to wait for others."""


class TaskConnections:
    """The connections of the tasks on one host, by the host's numbers."""

    def __init__(self, link: HostLink, objects: ObjectTable, requests: Requests) -> None:
        self._link = link
        self._objects = objects
        self._requests = requests
        self._connections: dict[int, TaskConnection] = {}

    def on_request(self, number: int, data: bytes) -> None:
        """Handle what a task sent."""
        connection = self._connections.get(number)
        if connection is None:
            connection = TaskConnection(
                lambda data: self._link.reply(number, data), self._objects, self._requests
            )
            self._connections[number] = connection
        if not connection.feed(data):
            self._link.disconnect(number)
            self.on_disconnected(number)

    def on_disconnected(self, number: int) -> None:
        """Forget a connection; its task waits no longer."""
        if connection := self._connections.pop(number, None):
            connection.close()

    def lose_all(self) -> None:
        """Forget all connections: their host has ended."""
        for number in list(self._connections):
            self.on_disconnected(number)


class TaskConnection:
    """One thread of a task."""

    def __init__(
        self, send: Callable[[bytes], None], objects: ObjectTable, requests: Requests
    ) -> None:
        self._send = send
        self._objects = objects
        self._requests = requests
        self._received: FrameBuffer[_Request] = FrameBuffer(FROM_TASK)
        self._executor: Executor | None = None
        self._waiter: Waiter | None = None
        self._watches: dict[bytes, Waiter] = {}
        self._wants_values = False

    def feed(self, data: bytes) -> bool:
        """Handle requests. Whether the connection stays open: its executor has not ended."""
        try:
            for request in self._received.feed(data):
                self._handle(request)
        except EOFError:
            return False
        except msgspec.DecodeError as error:
            log.warning("A task's request cannot be read; its connection is closed: %s", error)
            return False
        return True

    def _handle(self, request: _Request) -> None:
        if isinstance(request, Hello):
            self._executor = self._requests.find_executor(request.executor)
            if self._executor is None:
                # Killed since: nothing would ever release what its requests make.
                raise EOFError
            return
        if self._executor is None:
            log.warning("A task's connection began without its executor, and is closed.")
            raise EOFError
        if isinstance(request, StopWaiting):
            if self._waiter is not None:
                self._waiter.stop()
                self._answer_wait()
        elif isinstance(request, Watch):
            self._watch(request.id)
        elif isinstance(request, Unwatch):
            self._end_watch(request.id)
        else:
            self._answer_request(request)

    def _answer_request(self, request: _Answered) -> None:
        try:
            reply = self._answer(request)
        except Exception as error:  # noqa: BLE001 - the task that made the request gets it
            reply = Reply(error=error_payload(error))
        if reply is not None:
            self._reply(reply)

    def _answer(self, request: _Answered) -> Reply | None:
        if isinstance(request, Await):
            return self._begin_wait(request)
        if isinstance(request, Call):
            self._requests.submit(request, self._executor)
        elif isinstance(request, NewActor):
            return Reply(actor=self._requests.create_actor(request, self._executor))
        elif isinstance(request, FindActor):
            return Reply(actor=self._requests.find_actor(request.name, self._executor))
        elif isinstance(request, Put):
            self._requests.put(request.id, request.payload, self._executor)
        else:
            self._requests.cancel(request.id, recursive=request.recursive)
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
            return self._found(waiter)
        self._waiter = waiter
        self._pause(waits=True)
        return None

    def _answer_wait(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self.end_wait()
            self._reply(self._found(waiter))

    def end_wait(self) -> None:
        """Wait no longer for the objects of a request."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.stop()
            self._pause(waits=False)

    def _watch(self, ref: bytes) -> None:
        """Answer once an object is ready."""
        try:
            waiter = Waiter(
                self._objects, [ref], 1, values=True, on_done=lambda: self._answer_watch(ref)
            )
        except ContextError as error:
            self._reply(Reply(error=error_payload(error), ready=[ref]))
            return
        self._watches[ref] = waiter
        self._pause(waits=True)
        if waiter.is_done:
            self._answer_watch(ref)

    def _answer_watch(self, ref: bytes) -> None:
        if waiter := self._end_watch(ref):
            self._reply(Reply(ready=[ref], values=waiter.values(self._host)))

    def _end_watch(self, ref: bytes) -> Waiter | None:
        waiter = self._watches.pop(ref, None)
        if waiter is not None:
            waiter.stop()
            self._pause(waits=False)
        return waiter

    def close(self) -> None:
        """Wait no longer for anything."""
        self.end_wait()
        for ref in list(self._watches):
            self._end_watch(ref)

    def _pause(self, *, waits: bool) -> None:
        if self._executor is not None:
            self._requests.pause(self._executor, waits=waits)

    @property
    def _host(self) -> str:
        return self._executor.host if self._executor else ""

    def _reply(self, reply: Reply) -> None:
        reply.inline_limit = self._objects.inline.largest
        self._send(frame(reply))

    def _found(self, waiter: Waiter) -> Reply:
        if self._wants_values:
            return Reply(values=waiter.values(self._host))
        return Reply(ready=waiter.ready())
