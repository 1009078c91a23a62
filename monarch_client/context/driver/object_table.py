"""The objects of a context: which are ready, who waits for them, and how many refer to them.

Pure: without threads or sockets. An object is forgotten when nothing refers to it: no reference in
any process, no call that needs it, no other object that contains a reference to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol

import msgspec

from monarch_client.context.driver.inline_budget import InlineBudget
from monarch_client.context.driver.lineage import Recipe
from monarch_client.context.errors import ObjectLostError
from monarch_client.context.values import ERROR, STORED, Payload
from monarch_client.context.wire import Call


class Watcher(Protocol):
    """A wait for objects."""

    def note(self, ref: bytes, *, failed: bool) -> None:
        """Note that an object is ready."""


class Stored(Protocol):
    """The values that are in the stores of hosts."""

    def adopt(self, payload: Payload, ref: bytes, host: str, producer: str) -> None:
        """Take over an object from the process that has stored it on its host."""

    def refuse(self, payload: Payload, host: str) -> None:
        """Delete an object that nothing refers to, and that was not adopted."""

    def readable(self, payload: Payload, host: str) -> Payload:
        """Return the payload for a reader on a host."""

    def bytes_by_host(self, payloads: Iterable[Payload]) -> dict[str, int]:
        """Return how many bytes of these values each host has."""

    def keep_recipe(self, recipe: Recipe, host: str) -> None:
        """Keep how an object was made, if it can be lost with this host."""

    def discard(self, object_id: bytes) -> None:
        """Delete an object."""


class Entry:
    """An object: pending while it has no payload."""

    __slots__ = ("count", "on_unused", "payload", "watchers")

    def __init__(self, on_unused: Callable[[], None] | None = None) -> None:
        self.payload: Payload | None = None
        self.count = 1
        self.watchers: dict[Watcher, None] | None = None
        self.on_unused = on_unused


class ObjectTable:
    """Objects and actors by id. An actor's handles are counted as references are."""

    def __init__(self, stored: Stored, inline: InlineBudget | None = None) -> None:
        self._entries: dict[bytes, Entry] = {}
        self._stored = stored
        self.inline = inline or InlineBudget()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, ref: bytes) -> bool:
        return ref in self._entries

    def add(self, ref: bytes) -> None:
        """Add a pending object with one reference."""
        self._entries[ref] = Entry()

    def add_actor(self, ref: bytes, on_unused: Callable[[], None]) -> None:
        """Add an actor with one handle; `on_unused` is called when it has none."""
        self._entries[ref] = Entry(on_unused)

    def check(self, refs: Iterable[bytes]) -> None:
        """Raise ObjectLostError unless all of them exist."""
        for ref in refs:
            if ref not in self._entries:
                raise ObjectLostError(
                    f"The object {ref.hex()} exists no longer, or belongs to another context."
                )

    def payload(self, ref: bytes) -> Payload | None:
        """Return the payload of an object, or None while it is pending."""
        entry = self._entries.get(ref)
        return entry.payload if entry else None

    def own_values(self, refs: Iterable[bytes]) -> dict[bytes, Payload]:
        """Return the values among these objects that the driver has itself."""
        return {
            ref: payload
            for ref in refs
            if (payload := self.payload(ref)) and payload.kind not in (STORED, ERROR)
        }

    def is_ready(self, ref: bytes) -> bool:
        """Whether the object has a value or an error."""
        return self.payload(ref) is not None

    def readable(self, ref: bytes, host: str) -> Payload | None:
        """Return the payload of an object for a reader on a host; None while it is pending."""
        payload = self.payload(ref)
        if payload is not None and payload.kind == STORED:
            return self._stored.readable(payload, host)
        return payload

    def bytes_by_host(self, refs: Iterable[bytes]) -> dict[str, int]:
        """Return how many bytes of these objects each host has in its store."""
        payloads = map(self.payload, refs)
        return self._stored.bytes_by_host(each for each in payloads if each is not None)

    def settle(self, ref: bytes, payload: Payload, host: str = "", producer: str = "") -> None:
        """Give a pending object its payload; notify its watchers. A ready one stays as it is.

        `producer` has made it on `host`.
        """
        entry = self._entries.get(ref)
        if entry is None or entry.payload is not None:
            self.refuse(payload, host)
            return
        if payload.kind == STORED:
            self._stored.adopt(payload, ref, host, producer)
        else:
            self.inline.add(len(payload.data))
        entry.payload = payload
        for inside in payload.refs:
            self.keep(inside)
        watchers, entry.watchers = entry.watchers, None
        if watchers:
            failed = payload.kind == ERROR
            for watcher in watchers:
                watcher.note(ref, failed=failed)
        if entry.count <= 0:
            self._forget(ref, entry)

    def refuse(self, payload: Payload, host: str) -> None:
        """Delete a payload from a host that no object gets."""
        if payload.kind == STORED:
            self._stored.refuse(payload, host)

    def lose(self, refs: Collection[bytes]) -> None:
        """Make objects pending again whose values were lost with their host.

        Those are forgotten that only lost values contained.
        """
        for entry in map(self._entries.get, refs):
            if entry is not None and entry.payload is not None:
                inside = entry.payload.refs
                entry.payload = msgspec.structs.replace(entry.payload, refs=())
                for ref, unused in list(self._dropped(inside)):
                    self._forget(ref, unused)
        for entry in map(self._entries.get, refs):
            if entry is not None:
                entry.payload = None

    def keep_call(self, call: Call, payload: Payload, host: str, losses: int) -> None:
        """Keep the call of a task whose result is stored on a host: it may have to run again.

        A result that is not adopted, since nothing refers to it or it was cancelled, is not lost.
        """
        entry = self._entries.get(call.id)
        if payload.kind == STORED and entry is not None and entry.payload is None:
            values = self.own_values({*call.needs, *call.holds})
            self._stored.keep_recipe(Recipe(call, payload.data, losses, values), host)

    def keep(self, ref: bytes) -> None:
        """Count one more reference."""
        if entry := self._entries.get(ref):
            entry.count += 1

    def drop(self, ref: bytes) -> None:
        """Count one less; forget what nothing refers to any more."""
        entry = self._entries.get(ref)
        if entry is None:
            return
        entry.count -= 1
        if entry.count <= 0:
            self._forget(ref, entry)

    def watch(self, ref: bytes, watcher: Watcher) -> None:
        """Notify `watcher` when a pending object is ready."""
        entry = self._entries[ref]
        if entry.watchers is None:
            entry.watchers = {}
        entry.watchers[watcher] = None

    def unwatch(self, refs: Iterable[bytes], watcher: Watcher) -> None:
        """Forget a watcher of these objects."""
        for ref in refs:
            entry = self._entries.get(ref)
            if entry is not None and entry.watchers is not None:
                entry.watchers.pop(watcher, None)

    def pending(self) -> list[bytes]:
        """List the objects that have no payload yet, without actors."""
        return [
            ref
            for ref, entry in self._entries.items()
            if entry.payload is None and entry.on_unused is None
        ]

    def _dropped(self, refs: Iterable[bytes]) -> Iterator[tuple[bytes, Entry]]:
        """Count one reference less to each; yield those without any."""
        for ref in refs:
            if entry := self._entries.get(ref):
                entry.count -= 1
                if entry.count <= 0:
                    yield ref, entry

    def _discard(self, payload: Payload) -> None:
        """Delete what a payload has in the store."""
        if payload.kind == STORED:
            self._stored.discard(payload.data)
        else:
            self.inline.remove(len(payload.data))

    def _forget(self, ref: bytes, entry: Entry) -> None:
        """Forget an object with what it alone refers to: in a loop, for chains of any length."""
        unused = [(ref, entry)]
        while unused:
            ref, entry = unused.pop()
            if entry.payload is None and entry.on_unused is None:
                continue  # its call still runs; `settle` forgets it
            if self._entries.pop(ref, None) is None:
                continue
            if entry.payload is not None:
                self._discard(entry.payload)
                unused += self._dropped(entry.payload.refs)
            if entry.on_unused is not None:
                entry.on_unused()
