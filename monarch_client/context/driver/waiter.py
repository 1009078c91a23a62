"""A wait for objects: of a thread of the driver, or of a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from monarch_client.context.driver.object_table import ObjectTable
from monarch_client.context.values import ERROR, Payload


class Waiter:
    """A wait until `count` of the objects are ready; with `values`, or until one has an error."""

    def __init__(
        self,
        objects: ObjectTable,
        ids: list[bytes],
        count: int,
        *,
        values: bool,
        on_done: Callable[[], None],
    ) -> None:
        """Begin to wait. ObjectLostError: an object does not exist."""
        objects.check(ids)
        self.ids = ids
        self._objects = objects
        self._count = count
        self._stops_at_errors = values
        self._on_done = on_done
        self._missing = 0
        self.is_done = self._has_enough() or (values and self.error() is not None)
        if self.is_done:
            self.stop()

    def note(self, ref: bytes, *, failed: bool) -> None:
        """Note that an object is ready."""
        self._missing -= 1
        if self.is_done:
            return
        # Counted again at the end: objects that were ready may have been lost with their host.
        if (failed and self._stops_at_errors) or (self._missing <= 0 and self._has_enough()):
            self.stop()
            self._on_done()

    def _has_enough(self) -> bool:
        """Whether enough objects are ready; watches the others."""
        pending = [ref for ref in self.ids if not self._objects.is_ready(ref)]
        self._missing = self._count - (len(self.ids) - len(pending))
        if self._missing > 0:
            for ref in pending:
                self._objects.watch(ref, self)
        return self._missing <= 0

    def stop(self) -> None:
        """Wait no longer."""
        self.is_done = True
        self._objects.unwatch(self.ids, self)

    def ready(self) -> list[bytes]:
        """List the objects that are ready, in order."""
        return [ref for ref in self.ids if self._objects.is_ready(ref)]

    def values(self, host: str = "") -> list[Payload]:
        """Return the payloads that are ready, in order; only the first error if there is one.

        With a host they are for a reader there.
        """
        error = self.error()
        if error:
            return [error]
        if not host:
            return list(_ready_payloads(self._objects, self.ids))
        readable = (self._objects.readable(ref, host) for ref in self.ids)
        return [payload for payload in readable if payload]

    def error(self) -> Payload | None:
        """Return the first error among the objects."""
        payloads = _ready_payloads(self._objects, self.ids)
        return next((each for each in payloads if each.kind == ERROR), None)


def _ready_payloads(objects: ObjectTable, ids: Iterable[bytes]) -> Iterable[Payload]:
    for ref in ids:
        payload = objects.payload(ref)
        if payload is not None:
            yield payload
