"""The calls of a context, which are the same in a driver and in its tasks."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set, ValuesView
from contextlib import suppress
from typing import Any

from monarch_client.context.calls import (
    FUNCTION,
    arguments_call,
    new_actor,
    stored_arguments,
    task_call,
)
from monarch_client.context.code_cache import CodeCache
from monarch_client.context.errors import GetTimeoutError, ObjectLostError
from monarch_client.context.ids import new_id
from monarch_client.context.objects import (
    ObjectNotFoundError,
    ObjectUnreachableError,
    StoreClient,
)
from monarch_client.context.options import ActorOptions, TaskOptions
from monarch_client.context.refs import ActorHandle, ObjectRef
from monarch_client.context.texts import check_text
from monarch_client.context.values import (
    ERROR,
    SMALLEST_STORED,
    STORED,
    Payload,
    from_payload,
    to_payload,
)
from monarch_client.context.wire import Call, NewActor

# An object that cannot be fetched for so long is lost: a lost host is known much earlier.
_UNREACHABLE_S = 30.0
_RETRY_S = 0.25

# Of large functions, whose objects stay in the store for the next call.
_MOST_CODES, _MOST_CODE_BYTES = 8, 256 * 2**20


class TaskApi(ABC):
    """Tasks, actors and objects. A task calls its own through `get_job_context()`."""

    # The objects of large functions that it has called lately, by their digests.
    codes: CodeCache[bytes]

    def create_task(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: TaskOptions | None = None,
    ) -> ObjectRef:
        """Start `fn(*args, **kwargs)` in another process; return a reference to its result.

        The function and its arguments are pickled now. References among the arguments are replaced
        by their values before the call. InfeasibleError: no host can ever fit its resources.
        """
        return self._started(task_call(fn, args, kwargs, options, self))

    def create_actor(
        self,
        klass: type[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: ActorOptions | None = None,
    ) -> ActorHandle:
        """Start a process with an object of a class; return a handle that calls its methods.

        ValueError: its name is taken. With `get_if_exists` the actor of that name is returned.
        """
        actor = new_actor(klass, args, kwargs, options, self)
        _kept = self._store_large(actor.call)
        return ActorHandle(self._submit_actor(actor), actor.call.name, self)

    def get_actor(self, name: str) -> ActorHandle:
        """Return a handle of the actor that has a name. ValueError: no actor has it."""
        check_text("the name", name)
        return ActorHandle(self._find_actor(name), name, self)

    def get(self, refs: Any, timeout: float | None = None) -> Any:
        """Wait for the value of a reference, or for a list of them; raise a task's error.

        Whatever is no reference is returned as it is. If one of several tasks fails, its error is
        raised without waiting for the others. GetTimeoutError: not ready in `timeout` seconds.
        """
        timeout = _seconds(timeout)
        if not isinstance(refs, (list, tuple)):
            if not isinstance(refs, ObjectRef):
                _refuse_other_collections(refs)
            return self.get([refs], timeout)[0]
        ids = list(dict.fromkeys(each.id for each in refs if isinstance(each, ObjectRef)))
        payloads = self._values(ids, timeout) if ids else []
        if any(each.kind == ERROR for each in payloads):
            return from_payload(payloads[0], self)
        found = dict(zip(ids, payloads, strict=True))
        return [
            self.read(each.id, found[each.id]) if isinstance(each, ObjectRef) else each
            for each in refs
        ]

    def wait(
        self, refs: Sequence[ObjectRef], num_returns: int = 1, timeout: float | None = None
    ) -> tuple[list[ObjectRef], list[ObjectRef]]:
        """Wait until `num_returns` of the references are ready; return (ready, others).

        `ready` has at most `num_returns`, the first ones in the order of `refs`. Both lists have
        the objects of `refs` in their order. No value is moved; a failed task is ready.
        """
        timeout = _seconds(timeout)
        refs = list(refs)
        ids = _unique_ids(refs)
        if num_returns < 0:
            raise ValueError(f"num_returns cannot be negative, and is {num_returns}")
        count = min(num_returns, len(refs))
        ready = self._ready(ids, count, timeout) if count else set()
        first = [each for each in refs if each.id in ready][:count]
        chosen = {each.id for each in first}
        return first, [each for each in refs if each.id not in chosen]

    def put(self, obj: Any) -> ObjectRef:
        """Store an object; return a reference to it."""
        ref = ObjectRef(new_id(), self)
        self._put(ref.id, to_payload(obj, self))
        return ref

    def cancel(self, ref: ObjectRef, *, recursive: bool = True) -> None:
        """End a task: its reference raises TaskCancelledError. A task that has ended stays so.

        A running task gets KeyboardInterrupt, and its process is killed if that does not end it.
        The process of an actor is never killed. Its call gets KeyboardInterrupt, and a coroutine
        CancelledError at its `await`. What cannot be interrupted runs on, and its result is
        dropped: a method without `async` of an async actor, and calls in threads
        (`max_concurrency`). With `recursive`, what the task has called ends as well.
        """
        if not isinstance(ref, ObjectRef):
            raise TypeError(f"cancel takes the reference of a task or call, and not {ref!r}")
        self._cancel(ref.id, recursive=recursive)

    def call_actor(
        self, actor: bytes, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> ObjectRef:
        """Call a method of an actor: what handles do."""
        call = arguments_call("", args, kwargs, self)
        check_text("the name of a method", method)
        call.actor, call.method = actor, method
        return self._started(call)

    async def awaited(self, ref: bytes) -> Any:
        """Return the value of a reference once it is ready, or raise its error: for `await`."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[Payload] = loop.create_future()

        def settle(payload: Payload) -> None:
            if not ready.done():
                ready.set_result(payload)

        def on_ready(payload: Payload) -> None:
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(settle, payload)

        stop = self._watch(ref, on_ready)
        try:
            payload = await ready
        finally:
            stop()
        if payload.kind == STORED:  # perhaps on another host
            return await loop.run_in_executor(None, self.read, ref, payload)
        return self.read(ref, payload)

    def _started(self, call: Call) -> ObjectRef:
        """Make a call; return the reference to its result."""
        # Before the call: if a signal interrupts this, the reference is dropped nevertheless.
        ref = ObjectRef(call.id, self)
        _kept = self._store_large(call)
        self._submit(call)
        return ref

    def _store_large(self, call: Call) -> ObjectRef | None:
        """Make objects of a large function and of large arguments.

        Return the reference to the arguments, which the caller keeps until it has made the call.
        """
        if len(call.code) > SMALLEST_STORED and len(call.code) > self.inline_limit:
            call.needs.append(self._stored_code(call))
            call.places.append(FUNCTION)
            call.code = b""
        arguments = stored_arguments(call)
        if arguments is None:
            return None
        ref = ObjectRef(new_id(), self)
        self._put(ref.id, arguments)
        call.needs.append(ref.id)
        return ref

    def _stored_code(self, call: Call) -> bytes:
        """Return the object with the function of a call: the same one for equal functions."""
        ref = self.codes.find(call.digest)
        if ref is None:
            ref = new_id()
            self._put(ref, to_payload(call.code, self))
            for each in self.codes.add(call.digest, ref, len(call.code)):
                self.drop(each)
        return ref

    def store(self, value: object) -> bytes | None:
        """Write a value, or a serialized one, to the host's object store; return its id there.

        None: the host has no store.
        """
        objects = self._objects
        if objects is None:
            return None
        object_id = new_id()
        objects.put(object_id, value, owner=self._owner)
        return object_id

    def load(self, object_id: bytes, source: str) -> Any:
        """Return a value of the object store of this host, or first of host `source`."""
        objects = self._objects
        if objects is None:
            raise ObjectNotFoundError(object_id)
        return objects.get(object_id, source)

    def read(self, ref: bytes, payload: Payload) -> Any:
        """Return the value of a reference, or raise its error.

        If the host that has it does not send it, it may be lost: then it is soon ready again, or
        its error is known. ObjectLostError: neither.
        """
        ends_at: float | None = None
        while True:
            try:
                return from_payload(payload, self)
            except ObjectUnreachableError as error:
                ends_at = ends_at or time.monotonic() + _UNREACHABLE_S
                if time.monotonic() > ends_at:
                    raise ObjectLostError(
                        f"{error} Its host has not been reported as lost."
                    ) from error
            time.sleep(_RETRY_S)
            payload = self._values([ref], None)[0]

    @property
    @abstractmethod
    def inline_limit(self) -> int:
        """The bytes of the largest value that may be inside of a message."""

    @property
    @abstractmethod
    def _objects(self) -> StoreClient | None:
        """The process's client of the host's object store, or None if the host has none."""

    @property
    @abstractmethod
    def _owner(self) -> int:
        """The holder of what is stored, until the driver takes it over."""

    @abstractmethod
    def keep(self, ref: bytes) -> None:
        """Count one more reference to `ref` in this process."""

    @abstractmethod
    def drop(self, ref: bytes) -> None:
        """Count one less, without a lock."""

    @abstractmethod
    def _submit(self, call: Call) -> None:
        """Start a call; count one reference to its result."""

    @abstractmethod
    def _submit_actor(self, actor: NewActor) -> bytes:
        """Start an actor or find it by name; count one handle; return its id."""

    @abstractmethod
    def _find_actor(self, name: str) -> bytes:
        """Find an actor by name; count one handle; return its id."""

    @abstractmethod
    def _values(self, ids: list[bytes], timeout: float | None) -> list[Payload]:
        """Wait for all the objects, or for an error; return all in order, or only an error."""

    @abstractmethod
    def _ready(self, ids: list[bytes], count: int, timeout: float | None) -> set[bytes]:
        """Wait until `count` objects are ready, or for the time-out; return what is ready."""

    @abstractmethod
    def _watch(self, ref: bytes, on_ready: Callable[[Payload], None]) -> Callable[[], None]:
        """Call `on_ready`, in any thread, once an object is ready; return what ends that."""

    @abstractmethod
    def _put(self, ref: bytes, payload: Payload) -> None:
        """Store an object; count one reference to it."""

    @abstractmethod
    def _cancel(self, ref: bytes, *, recursive: bool) -> None:
        """Cancel a call, and with `recursive` those that it has made."""


def stored_codes() -> CodeCache[bytes]:
    """Return an empty cache of the objects of large functions."""
    return CodeCache(_MOST_CODES, _MOST_CODE_BYTES)


def timed_out(missing: int, timeout: float) -> GetTimeoutError:
    """Return the error of a `get` that waited for too long."""
    subject = "1 value was" if missing == 1 else f"{missing} values were"
    return GetTimeoutError(f"{subject} not ready within {timeout:g} s.")


def _seconds(timeout: float | None) -> float | None:
    """Return a time-out that locks take. ValueError: it is not a number."""
    if timeout is None:
        return None
    if math.isnan(timeout):
        raise ValueError("timeout is a number of seconds or None, and not nan")
    return min(timeout, threading.TIMEOUT_MAX)


def _refuse_other_collections(refs: object) -> None:
    """Raise TypeError for references in what `get` would return as it is."""
    values = refs.values() if isinstance(refs, Mapping) else refs
    has_refs = isinstance(values, (Set, ValuesView)) and any(
        isinstance(each, ObjectRef) for each in values
    )
    if has_refs or isinstance(refs, Iterator):
        raise TypeError(f"get takes a reference or a list of them, and not {type(refs).__name__}")


def _unique_ids(refs: Sequence[ObjectRef]) -> list[bytes]:
    for each in refs:
        if not isinstance(each, ObjectRef):
            raise TypeError(f"wait takes references, and not {each!r}")
    ids = [each.id for each in refs]
    if len(set(ids)) < len(ids):
        raise ValueError("wait takes each reference once")
    return ids
