"""Proxies of Monarch's meshes, with the names and signatures that Monarch's own have.

A view of a mesh is resolved where the meshes are: each message names the view by an id.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from monarch_client.attaching.errors import SharedWorkersError
from monarch_client.gateway.proxies.futures import FutureProxy
from monarch_client.gateway.proxies.references import Reference
from monarch_client.gateway.proxies.values import ShapedProxy, ValueMeshProxy
from monarch_client.runner.scripts.mportal_proxies.classes import name_of
from monarch_client.runner.scripts.mportal_proxies.shapes import Shape

if TYPE_CHECKING:
    from monarch_client.gateway.proxies.session import ProxySession

M = TypeVar("M", bound="MeshProxy")


class MeshProxy(Reference, ShapedProxy):
    """A mesh on the cluster: its id there, and its shape."""

    def __init__(self, session: ProxySession, number: int, shape: Shape) -> None:
        Reference.__init__(self, session, number)
        ShapedProxy.__init__(self, shape)
        self._session = session
        # The host meshes of the job, whose ids are negative, live as long as the session.
        if number > 0:
            weakref.finalize(self, session.forget, number)

    @property
    def initialized(self) -> FutureProxy[bool]:
        """A future that is done when the mesh is there."""
        return self._request({"op": "initialized"})

    def slice(self: M, **selectors: Any) -> M:
        """Return a part of the mesh; an integer removes its dimension."""
        return self._derive("slice", selectors, self._shape.slice(selectors))

    def flatten(self: M, name: str) -> M:
        """Return the mesh with one dimension."""
        return self._derive("flatten", name, self._shape.flatten(name))

    def split(self: M, **given: Any) -> M:
        """Return the mesh with some dimensions split into several."""
        return self._derive("split", given, self._shape.split(given))

    def rename(self: M, **names: str) -> M:
        """Return the mesh with other names of dimensions."""
        return self.split(**{old: (new,) for old, new in names.items()})

    def _derive(self: M, how: str, given: Any, shape: Shape) -> M:
        number = self._session.new_number()
        self._post({"op": "derive", "how": how, "given": given, "new": number})
        return self._with(number, shape)

    def _with(self: M, number: int, shape: Shape) -> M:
        return type(self)(self._session, number, shape)

    def _post(self, message: dict[str, Any]) -> None:
        self._session.post({**message, "of": self._number})

    def _request(self, message: dict[str, Any]) -> FutureProxy[Any]:
        return self._session.request({**message, "of": self._number})[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extent})"


class HostMeshProxy(MeshProxy):
    """The hosts of a job's mesh."""

    def spawn_procs(
        self,
        per_host: Mapping[str, int] | None = None,
        bootstrap: Callable[..., Any] | None = None,
        name: str | None = None,
        proc_bind: list[dict[str, str]] | None = None,
        bootstrap_command: Any = None,
    ) -> ProcMeshProxy:
        """Start processes on each host. `bootstrap` and `bootstrap_command` need pickle."""
        sizes = dict(per_host or {})
        if overlap := set(sizes) & set(self.sizes):
            raise ValueError(f"per_host labels {sorted(overlap)} are labels of the hosts")
        arguments = {
            "per_host": sizes,
            "bootstrap": bootstrap,
            "name": name,
            "proc_bind": proc_bind,
            "bootstrap_command": bootstrap_command,
        }
        given = {key: value for key, value in arguments.items() if value is not None}
        number = self._session.new_number()
        self._post({"op": "spawn_procs", "arguments": given, "new": number})
        shape = Shape.dense({**self.sizes, **sizes})
        return ProcMeshProxy(self._session, number, shape, self)

    def stop(self) -> FutureProxy[None]:
        """Stop all processes that this session started on the job's hosts."""
        return self._request({"op": "stop"})

    def shutdown(self) -> NoReturn:
        """Refuse: the workers belong to the job, and others may use them."""
        raise SharedWorkersError(
            "shutdown() would end the job's workers for every program. Use stop(): it ends the "
            "processes of this session."
        )


class ProcMeshProxy(MeshProxy):
    """Processes on the hosts of a job."""

    def __init__(
        self, session: ProxySession, number: int, shape: Shape, host_mesh: HostMeshProxy
    ) -> None:
        super().__init__(session, number, shape)
        self._host_mesh = host_mesh

    @property
    def host_mesh(self) -> HostMeshProxy:
        """The hosts that the processes were started on."""
        return self._host_mesh

    def spawn(self, name: str, Class: str | type, *args: Any, **kwargs: Any) -> ActorMeshProxy:  # noqa: N803 - as Monarch names it
        """Spawn an actor in each process.

        `Class` names a class in the code on the cluster, `"package.module:Class"`. A class of a
        module that both sides have is accepted too.
        """
        number = self._session.new_number()
        message = {
            "op": "spawn",
            "new": number,
            "name": name,
            "class": _class_name(Class),
            "args": args,
            "kwargs": kwargs,
        }
        endpoints = self._request(message).get()
        return ActorMeshProxy(self._session, number, self._shape, tuple(endpoints))

    def stop(self, reason: str = "stopped by client") -> FutureProxy[None]:
        """Stop the processes, and with them their actors."""
        return self._request({"op": "stop", "reason": reason})

    def _with(self, number: int, shape: Shape) -> ProcMeshProxy:
        return ProcMeshProxy(self._session, number, shape, self._host_mesh)


class ActorMeshProxy(MeshProxy):
    """Actors of one class. Each endpoint is an attribute: `actors.step.call(1)`."""

    def __init__(
        self, session: ProxySession, number: int, shape: Shape, endpoints: tuple[str, ...]
    ) -> None:
        super().__init__(session, number, shape)
        self._endpoints = endpoints

    def __getattr__(self, name: str) -> EndpointProxy:
        """Return an endpoint of the actors."""
        if name.startswith("_") or name not in self._endpoints:
            raise AttributeError(name)
        return EndpointProxy(self, name)

    def __dir__(self) -> list[str]:
        """List the attributes, and the endpoints among them."""
        return [*super().__dir__(), *self._endpoints]

    def stop(self, reason: str = "stopped by client") -> FutureProxy[None]:
        """Stop the actors; their processes go on."""
        return self._request({"op": "stop", "reason": reason})

    def _with(self, number: int, shape: Shape) -> ActorMeshProxy:
        return ActorMeshProxy(self._session, number, shape, self._endpoints)


class EndpointProxy:
    """An endpoint of the actors of a mesh."""

    def __init__(self, mesh: ActorMeshProxy, name: str) -> None:
        self._mesh = mesh
        self._name = name

    def call(self, *args: Any, **kwargs: Any) -> FutureProxy[ValueMeshProxy[Any]]:
        """Call the endpoint of all actors."""
        shape = self._mesh._shape
        return self._send("call", args, kwargs, lambda values: ValueMeshProxy(shape, values))[0]

    def call_one(self, *args: Any, **kwargs: Any) -> FutureProxy[Any]:
        """Call the endpoint of the only actor. ValueError: there are several."""
        if (count := len(self._mesh)) != 1:
            raise ValueError(f"call_one requires exactly 1 actor, but mesh has {count}")
        return self._send("call_one", args, kwargs)[0]

    def choose(self, *args: Any, **kwargs: Any) -> FutureProxy[Any]:
        """Call the endpoint of one of the actors."""
        return self._send("choose", args, kwargs)[0]

    def stream(self, *args: Any, **kwargs: Any) -> Iterator[FutureProxy[Any]]:
        """Call the endpoint of all actors; iterate over the futures in the order of completion."""
        return iter(self._send("stream", args, kwargs))

    def broadcast(self, *args: Any, **kwargs: Any) -> None:
        """Call the endpoint of all actors, without results."""
        message = {"op": "call", "how": "broadcast", "endpoint": self._name}
        self._mesh._post({**message, "args": args, "kwargs": kwargs})

    def _send(
        self,
        how: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        convert: Callable[[Any], Any] | None = None,
    ) -> list[FutureProxy[Any]]:
        mesh = self._mesh
        message = {
            "op": "call",
            "how": how,
            "of": mesh._number,
            "endpoint": self._name,
            "count": len(mesh) if how == "stream" else 1,
            "args": args,
            "kwargs": kwargs,
        }
        return mesh._session.request(message, convert)


def _class_name(cls: str | type) -> str:
    if isinstance(cls, str):
        return cls
    if cls.__module__ == "__main__":
        raise ValueError(
            f"{cls.__name__} is a class of this program, which the cluster does not have: move it "
            "to a module of the job's code, and name it as 'module:Class'"
        )
    return name_of(cls)
