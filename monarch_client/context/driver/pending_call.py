"""A call that waits for its arguments, and its message once they are ready."""

from __future__ import annotations

from collections.abc import Callable

from monarch_client.context.driver.executors import Executor
from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.values import ERROR, Payload
from monarch_client.context.wire import Call, Run, frame

Ready = Callable[["PendingCall"], None]


class PendingCall:
    """A call with the objects that it refers to, which exist until it ends."""

    __slots__ = (
        "_children",
        "_missing",
        "_objects",
        "_on_ready",
        "_siblings",
        "call",
        "counted",
        "failure",
        "is_cancelled",
        "is_cancelled_with_children",
        "is_released",
    )

    def __init__(self, call: Call, objects: ObjectTable, on_ready: Ready) -> None:
        """Hold the call's objects. ObjectLostError: one of them does not exist."""
        self.call = call
        # The name that it is counted by.
        self.counted = call.name
        self.failure: Payload | None = None
        self.is_cancelled = self.is_cancelled_with_children = self.is_released = False
        self._children: dict[bytes, None] | None = None
        # Those of the call that has made it, and not that call, which may end and be freed before.
        self._siblings: dict[bytes, None] | None = None
        self._objects = objects
        self._on_ready = on_ready
        references = self._references()
        objects.check(references)
        for ref in references:
            objects.keep(ref)
        objects.inline.add(len(call.code))
        objects.inline.add(len(call.args.data))
        self._missing = 0

    @property
    def is_ready(self) -> bool:
        """Whether all arguments are ready, or one of them has an error."""
        return self._missing == 0 or self.failure is not None

    @property
    def has_arguments(self) -> bool:
        """Whether all arguments are ready: some may have been lost since they were."""
        needs = self.call.needs
        return not needs or all(map(self._objects.is_ready, needs))

    @property
    def is_sendable(self) -> bool:
        """Whether the call can be sent, or ended by its failure, with its arguments of now."""
        return self.failure is not None or (self._missing == 0 and self.has_arguments)

    @property
    def children(self) -> list[bytes]:
        """The calls that it has made and that have not ended."""
        return list(self._children or ())

    def add_child(self, child: PendingCall) -> None:
        """Note a call that this one has made, until that ends."""
        self._children = self._children or {}
        self._children[child.call.id] = None
        child._siblings = self._children

    def await_arguments(self) -> None:
        """Call `on_ready` now, or once the arguments are ready: again if some were lost."""
        self._missing = 0
        for ref in set(self.call.needs):
            payload = self._objects.payload(ref)
            if payload is None:
                self._missing += 1
                self._objects.watch(ref, self)
            elif payload.kind == ERROR:
                self.failure = payload
        if self.is_ready:
            self._on_ready(self)

    def note(self, ref: bytes, *, failed: bool) -> None:
        """Note that an argument is ready."""
        was_ready = self.is_ready
        self._missing -= 1
        if failed:
            self.failure = self._objects.payload(ref)
        if self.is_ready and not was_ready:
            # Counted again: an argument that was ready may have been lost with its host.
            self.await_arguments()

    def release(self) -> None:
        """Hold the objects no longer: the call has ended."""
        if self.is_released:
            return
        self.is_released = True
        if self._siblings is not None:
            self._siblings.pop(self.call.id, None)
        self._objects.unwatch(self.call.needs, self)
        self._objects.inline.remove(len(self.call.code))
        self._objects.inline.remove(len(self.call.args.data))
        for ref in self._references():
            self._objects.drop(ref)

    def message(self, executor: Executor, max_concurrency: int = 1) -> bytes:
        """Return the message that makes an executor run the call."""
        call = self.call
        knows_code = not call.digest or executor.codes.find(call.digest) is not None
        if not knows_code:
            executor.codes.add(call.digest, True, call.code_bytes)
        values: list[Payload] = []
        for ref in call.needs:
            payload = self._objects.readable(ref, executor.host)
            if payload is None:
                raise AssertionError  # its arguments are ready
            values.append(payload)
        return frame(
            Run(
                id=call.id,
                name=call.name,
                digest=call.digest,
                code=b"" if knows_code else call.code,
                code_bytes=call.code_bytes,
                args=call.args,
                places=call.places,
                needs=call.needs,
                values=values,
                env=call.env,
                method=call.method,
                max_concurrency=max_concurrency,
                inline_limit=self._objects.inline.largest,
            )
        )

    def _references(self) -> list[bytes]:
        actor = [self.call.actor] if self.call.actor else []
        return [*self.call.needs, *self.call.holds, *actor]
