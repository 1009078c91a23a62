"""The objects in the stores of the hosts: where each is, and what the driver does with it."""

from __future__ import annotations

import os
import secrets
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from monarch_client.context.driver.lineage import Lineage, Recipe
from monarch_client.context.hosting.batches import AgentSettings
from monarch_client.context.hosting.link import StoreLink
from monarch_client.context.ids import holder_of
from monarch_client.context.objects import HostObjects
from monarch_client.context.values import STORED, Payload, with_source


@dataclass(slots=True)
class Place:
    """An object in the store of a host: the value of `ref`, which `producer` has made."""

    ref: bytes
    host: str
    size: int
    producer: str
    # Hosts that were told to fetch it. They may have evicted their copy.
    copies: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Held:
    """The objects of one host."""

    objects: int = 0
    bytes: int = 0


class StoredObjects:
    """The values of a context that are too large for messages."""

    def __init__(
        self,
        limit: int | None = None,
        spill_directory: str | os.PathLike[str] | None = None,
        transport: str = "auto",
    ) -> None:
        """Make the store of the driver. Without a mesh it is that of the host as well."""
        self.own = HostObjects(limit, spill_directory)
        # Of the stores on the hosts of a mesh.
        folder = None if spill_directory is None else os.fspath(spill_directory)
        self.settings = AgentSettings(secrets.token_hex(16), limit, folder, transport)
        self.store, self.client = self.own.store, self.own.client
        # The name of the driver's store among the hosts.
        self.home = ""
        self._stores: dict[str, StoreLink] = {}
        self._places: dict[bytes, Place] = {}
        # By host; counted when they change, since there may be many objects.
        self._held: defaultdict[str, _Held] = defaultdict(_Held)
        self.lineage = Lineage()

    def add_host(self, name: str, store: StoreLink) -> None:
        """Add the store of a host."""
        self._stores[name] = store

    def set_home(self, name: str) -> None:
        """Add the driver's own store, by the name that hosts fetch from it with."""
        self.home = name
        self.add_host(name, self.store)

    def adopt(self, payload: Payload, ref: bytes, host: str, producer: str) -> None:
        """Take over an object from the process that has stored it on its host."""
        if store := self._stores.get(host):
            self._places[payload.data] = Place(ref, host, payload.size, producer)
            self._held[host].objects += 1
            self._held[host].bytes += payload.size
            store.adopt(payload.data)

    def refuse(self, payload: Payload, host: str) -> None:
        """Delete an object that nothing refers to, and that was not adopted."""
        if store := self._stores.get(host):
            store.discard(payload.data)

    def discard(self, object_id: bytes) -> None:
        """Delete an object and its copies; values that were read from it stay usable."""
        place = self._places.pop(object_id, None)
        if place is None:
            return
        self._held[place.host].objects -= 1
        self._held[place.host].bytes -= place.size
        self.lineage.drop(place.ref, object_id)
        if store := self._stores.get(place.host):
            store.discard(object_id)
        self._forget_copies(object_id, place)

    def readable(self, payload: Payload, host: str) -> Payload:
        """Return the payload for a reader on a host, which fetches the object if it must."""
        place = self._places.get(payload.data)
        if payload.kind != STORED or place is None or place.host == host:
            return payload
        place.copies.add(host)
        return with_source(payload, place.host)

    def bytes_by_host(self, payloads: Iterable[Payload]) -> dict[str, int]:
        """Return how many bytes of these objects each host has."""
        found: dict[str, int] = {}
        for payload in payloads:
            if payload.kind == STORED and (place := self._places.get(payload.data)):
                for host in {place.host, *place.copies}:
                    found[host] = found.get(host, 0) + place.size
        return found

    def executor_ended(self, host: str, executor: int) -> None:
        """Delete what an executor has stored and did not report before its end."""
        if store := self._stores.get(host):
            store.process_ended(holder_of(executor))

    def lose_host(self, name: str) -> list[Place]:
        """Forget a lost host, and copies of its objects; return the places that these had."""
        del self._stores[name]
        self._held.pop(name, None)
        lost = {each: place for each, place in self._places.items() if place.host == name}
        for object_id, place in lost.items():
            del self._places[object_id]
            self._forget_copies(object_id, place)
        for place in self._places.values():
            place.copies.discard(name)
        return list(lost.values())

    def _forget_copies(self, object_id: bytes, place: Place) -> None:
        for host in place.copies:
            if store := self._stores.get(host):
                store.forget_copy(object_id)

    def keep_recipe(self, recipe: Recipe, host: str) -> None:
        """Keep how an object was made, if it can be lost with this host."""
        if host != self.home and recipe.call.max_retries:
            self.lineage.add(recipe)

    def held_by(self, host: str) -> tuple[int, int]:
        """Return how many objects a host has, and their bytes, without copies."""
        held = self._held[host]
        return held.objects, held.bytes

    def close(self) -> None:
        """End the driver's store. Values that were read stay usable."""
        self.own.close()
