"""The meshes of a session by the ids that its client chose, and the calls on them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .classes import import_class
from .shapes import Shape

if TYPE_CHECKING:
    from typing import Any, Awaitable, Iterator, Mapping, Sequence

_DERIVATIONS = frozenset({"slice", "flatten", "split"})


class MeshFailedError(RuntimeError):
    """A mesh that could not be made; later calls on it have the same cause."""


@dataclass(frozen=True)
class Entry:
    """A mesh of Monarch, its shape, and the host of each rank that the mesh was made with."""

    mesh: Any
    shape: Shape
    hosts: tuple[str, ...]
    endpoints: frozenset[str] = frozenset()
    is_hosts: bool = False

    @property
    def location(self) -> tuple[int | None, str | None]:
        """The rank and host of the only member, or nothing for a mesh of several."""
        if len(self.shape) != 1:
            return None, None
        return self.shape.offset, self.hosts[self.shape.offset]


class Meshes:
    """The table of meshes, and each operation on one."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry | Exception] = {}
        # All proc meshes, also those that the client no longer uses.
        self.spawned: list[Any] = []

    def add_hosts(self, number: int, mesh: Any, hosts: Sequence[str]) -> None:
        """Add a host mesh of the job."""
        shape = Shape.dense(dict(mesh.sizes))
        self._entries[number] = Entry(mesh, shape, tuple(hosts), is_hosts=True)

    def entry(self, number: int) -> Entry:
        """Return a mesh. MeshFailedError: it could not be made. KeyError: it never was."""
        entry = self._entries[number]
        if isinstance(entry, Exception):
            raise MeshFailedError(f"the mesh could not be made: {entry!r}") from entry
        return entry

    def resolve(self, number: int) -> Any:
        """Return the mesh that an argument refers to."""
        return self.entry(number).mesh

    def drop(self, message: Mapping[str, Any]) -> None:
        """Forget meshes that the client no longer uses. They go on."""
        for number in message["ids"]:
            self._entries.pop(number, None)

    def derive(self, message: Mapping[str, Any]) -> None:
        """Make a view of a mesh: its slice, or its ranks with other dimensions."""
        how, given = message["how"], message["given"]
        if how not in _DERIVATIONS:
            raise ValueError(f"{how!r} makes no mesh")
        try:
            entry = self.entry(message["of"])
            if how == "flatten":
                made = replace(
                    entry, mesh=entry.mesh.flatten(given), shape=entry.shape.flatten(given)
                )
            else:
                made = replace(
                    entry,
                    mesh=getattr(entry.mesh, how)(**given),
                    shape=getattr(entry.shape, how)(given),
                )
        except Exception as error:  # noqa: BLE001 - the caller of the mesh gets it
            self._entries[message["new"]] = error
        else:
            self._entries[message["new"]] = made

    def spawn_procs(self, message: Mapping[str, Any]) -> None:
        """Start processes on hosts. A failure is raised by the calls on them."""
        try:
            entry = self.entry(message["of"])
            made = entry.mesh.spawn_procs(**message["arguments"])
        except Exception as error:  # noqa: BLE001 - the caller of the mesh gets it
            self._entries[message["new"]] = error
            return
        self.spawned.append(made)
        shape = Shape.dense(dict(made.sizes))
        hosts = [entry.hosts[rank] for rank in entry.shape.ranks()]
        count = len(shape) // len(hosts)
        spread = tuple(host for host in hosts for _ in range(count))
        self._entries[message["new"]] = Entry(made, shape, spread)

    async def spawn(self, message: Mapping[str, Any]) -> list[str]:
        """Spawn actors, and return the names of their endpoints."""
        loop = asyncio.get_running_loop()
        entry = self.entry(message["of"])
        # In a thread: a user's module may take seconds to import, and results must go on.
        cls = await loop.run_in_executor(None, import_class, message["class"])
        made = entry.mesh.spawn(message["name"], cls, *message["args"], **message["kwargs"])
        names = [
            name for name in dir(cls) if callable(getattr(getattr(made, name, None), "call", None))
        ]
        self._entries[message["new"]] = replace(entry, mesh=made, endpoints=frozenset(names))
        return names

    def call(self, message: Mapping[str, Any]) -> Any:
        """Send a call, and return what Monarch returns at once: a future, several, or None."""
        entry, how = self.entry(message["of"]), message["how"]
        if message["endpoint"] not in entry.endpoints:
            raise AttributeError(f"the actor has no endpoint {message['endpoint']!r}")
        if how not in {"call", "call_one", "choose", "stream", "broadcast"}:
            raise ValueError(f"{how!r} is no way to call an endpoint")
        endpoint = getattr(entry.mesh, message["endpoint"])
        return getattr(endpoint, how)(*message["args"], **message["kwargs"])

    def stop(self, message: Mapping[str, Any]) -> Any:
        """Stop a mesh, and return the future of its end.

        Hosts belong to the job: stopping them ends only what this session started on them.
        """
        entry = self.entry(message["of"])
        return entry.mesh.stop() if entry.is_hosts else entry.mesh.stop(message["reason"])

    def initialized(self, message: Mapping[str, Any]) -> Any:
        """Return the future of a mesh that is being made."""
        return self.entry(message["of"]).mesh.initialized


def results_of(message: Mapping[str, Any], sent: Any) -> Iterator[Awaitable[Any]]:
    """Return what the client waits for: one result, or one for each of a stream."""
    how = message.get("how")
    if how == "stream":
        # Each by itself: an error does not end the stream.
        return iter(sent)
    return map(_values_of, [sent]) if how == "call" else iter([sent])


async def _values_of(sent: Any) -> list[Any]:
    return list((await sent).values())
