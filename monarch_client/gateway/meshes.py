"""The meshes of a job in a program outside of it: `meshes.trainers` or `meshes["trainers"]`."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from monarch_client.attaching.errors import AttachError

if TYPE_CHECKING:
    from monarch.actor import HostMesh


class UnknownMeshError(AttachError, AttributeError, KeyError):
    """A name that no mesh of the job has."""

    code = "unknown_mesh"
    # KeyError would print the text in quotes.
    __str__ = Exception.__str__


class Meshes(Mapping[str, "HostMesh"]):
    """The job's meshes by name, each attached at its first use."""

    def __init__(self, job: str, hello: Mapping[str, Any]) -> None:
        self._job = job
        addresses = {int(each["rank"]): str(each["address"]) for each in hello["workers"]}
        self._workers = {
            name: [addresses[rank] for rank in ranks] for name, ranks in hello["meshes"].items()
        }
        self._attached: dict[str, HostMesh] = {}
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> HostMesh:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> HostMesh:
        # Monarch is a large import, and not needed before.
        from monarch_client.attaching.meshes import SharedHostMesh, meshes_of  # noqa: PLC0415

        if name not in self._workers:
            names = ", ".join(sorted(self._workers))
            raise UnknownMeshError(f"No mesh is called {name!r}; {self._job} has: {names}.")
        with self._lock:
            if name not in self._attached:
                monarch_name = name.replace("-", "_")
                mesh = meshes_of({monarch_name: self._workers[name]})[monarch_name]
                self._attached[name] = SharedHostMesh.of(mesh, self._job)
            return self._attached[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._workers)

    def __len__(self) -> int:
        return len(self._workers)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._workers]

    def attached(self) -> dict[str, HostMesh]:
        """Return the meshes that were used."""
        return dict(self._attached)
