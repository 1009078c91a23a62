"""The context of a driver: tasks, actors and objects on this machine."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from monarch_client.context.api import TaskApi, stored_codes, timed_out
from monarch_client.context.driver.driver import Driver
from monarch_client.context.driver.inline_budget import DEFAULT_BYTES, InlineBudget
from monarch_client.context.driver.stored_objects import StoredObjects
from monarch_client.context.driver.waiter import Waiter
from monarch_client.context.errors import ContextError
from monarch_client.context.hosting.rdma import Transport, checked_transport
from monarch_client.context.objects import OWNER, StoreClient
from monarch_client.context.task_context import own_context
from monarch_client.context.values import ERROR, STORED, Payload
from monarch_client.context.wire import Call, NewActor

if TYPE_CHECKING:
    from monarch.actor import HostMesh


class JobContext(TaskApi):
    """Tasks, actors and objects in processes that end with this program.

    `JobContext(mesh)` uses the hosts of a Monarch mesh, `JobContext()` this machine. `resources`
    replaces what was found of this machine: `CPU`, `GPU`, `memory` in bytes, and any others that
    tasks may request. Values above 64 kB are in shared memory of the host that made them, of up to
    `object_store_bytes`, by default 30% of the memory that is free there, and what does not fit is
    in a file of `spill_directory`, by default the folder for temporary files. Smaller ones are in
    the memory of the driver, up to `inline_bytes` in total; from then on new ones above 1 kB are in
    the shared memory, too. `object_transport`: "tcp" or "rdma" is how hosts of a mesh send each
    other values of the shared memory; "auto" is RDMA where both have ibverbs, else TCP.
    """

    def __init__(
        self,
        hosts: HostMesh | None = None,
        *,
        resources: Mapping[str, float] | None = None,
        object_store_bytes: int | None = None,
        spill_directory: str | os.PathLike[str] | None = None,
        inline_bytes: int = DEFAULT_BYTES,
        object_transport: Transport = "auto",
    ) -> None:
        if hosts is not None and resources:
            raise ValueError("resources= describes this machine, and hosts= are others")
        if not hasattr(os, "pidfd_open"):
            raise ContextError("A task context needs Linux 5.3 or later.")
        self._pid = os.getpid()
        self.codes = stored_codes()
        transport = checked_transport(object_transport)
        stored = StoredObjects(object_store_bytes, spill_directory, transport)
        try:
            self._driver = Driver(hosts, resources, stored, InlineBudget(inline_bytes))
        except BaseException:
            stored.close()
            raise
        # When nothing refers to this context any more, and at the end of the program: before
        # whatever its mesh has registered, which finalizers alone need not precede.
        self._finalizer = weakref.finalize(self, _end, self._driver, self._pid)
        self._finalizer.atexit = False
        atexit.register(self._finalizer)

    def __enter__(self) -> JobContext:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Become the task's own context where it is unpickled."""
        return own_context, ()

    def close(self) -> None:
        """End all tasks and actors. What is pending raises ContextClosedError."""
        if os.getpid() == self._pid:
            atexit.unregister(self._finalizer)
            self._driver.close()

    def keep(self, ref: bytes) -> None:
        """Count one more reference."""
        with self._own_driver.loop.lock:
            self._driver.objects.keep(ref)

    def drop(self, ref: bytes) -> None:
        """Count one less."""
        if os.getpid() == self._pid:
            self._driver.drop(ref)

    @property
    def _own_driver(self) -> Driver:
        """The driver. ContextError: this process is a fork, with a copy that no thread serves."""
        if os.getpid() != self._pid:
            raise ContextError(
                f"This task context belongs to process {self._pid}, and this is a fork of it:"
                " use it in the process that made it."
            )
        return self._driver

    @property
    def inline_limit(self) -> int:
        """The bytes of the largest value that may be inside of a message."""
        return self._driver.objects.inline.largest

    @property
    def _objects(self) -> StoreClient:
        return self._own_driver.stored.client

    @property
    def _owner(self) -> int:
        return OWNER

    def _submit(self, call: Call) -> None:
        with self._own_driver.loop.lock:
            self._driver.submit(call, None)

    def _submit_actor(self, actor: NewActor) -> bytes:
        with self._own_driver.loop.lock:
            return self._driver.create_actor(actor, None)

    def _find_actor(self, name: str) -> bytes:
        with self._own_driver.loop.lock:
            return self._driver.find_actor(name, None)

    def _put(self, ref: bytes, payload: Payload) -> None:
        with self._own_driver.loop.lock:
            self._driver.put(ref, payload, None)

    def _cancel(self, ref: bytes, *, recursive: bool) -> None:
        with self._own_driver.loop.lock:
            self._driver.cancel(ref, recursive=recursive)

    def _watch(self, ref: bytes, on_ready: Callable[[Payload], None]) -> Callable[[], None]:
        driver = self._own_driver

        def stop() -> None:
            with driver.loop.lock:
                waiter.stop()

        with driver.loop.lock:
            waiter = Waiter(
                driver.objects,
                [ref],
                1,
                values=True,
                on_done=lambda: on_ready(*waiter.values(driver.stored.home)),
            )
            if waiter.is_done:
                on_ready(*waiter.values(driver.stored.home))
        return stop

    def _values(self, ids: list[bytes], timeout: float | None) -> list[Payload]:
        ends_at = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if ends_at is None else ends_at - time.monotonic()
            waiter = self._own_driver.await_objects(ids, len(ids), left, values=True)
            # Read without the lock: the references of the caller keep the objects.
            values = waiter.values()
            if len(values) == len(ids) or any(each.kind == ERROR for each in values):
                break
            # Else a value was lost with its host since it was ready.
            if timeout is not None and ends_at is not None and time.monotonic() >= ends_at:
                raise timed_out(len(ids) - len(values), timeout)
        if any(each.kind == STORED for each in values):
            with self._driver.loop.lock:
                stored = self._driver.stored
                return [stored.readable(each, stored.home) for each in values]
        return values

    def _ready(self, ids: list[bytes], count: int, timeout: float | None) -> set[bytes]:
        return set(self._own_driver.await_objects(ids, count, timeout, values=False).ready())


def _end(driver: Driver, pid: int) -> None:
    """End the processes of a context that its program no longer has."""
    if os.getpid() != pid:
        return
    if threading.current_thread() is threading.main_thread():
        driver.close()
    else:
        # Garbage collection runs anywhere: a thread of the driver cannot wait for its own end.
        threading.Thread(target=driver.close, name="close").start()
