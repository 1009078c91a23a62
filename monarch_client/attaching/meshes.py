"""The meshes of a program: attached once, and for the life of the process. Imports monarch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import monarch.actor
from monarch.actor import HostMesh, attach, attach_to_workers

from monarch_client.attaching import profile
from monarch_client.attaching.errors import (
    ConnectionLostError,
    MonarchInUseError,
    SharedWorkersError,
    WorkersUnreachableError,
)
from monarch_client.attaching.reloading import SpawnedProcs

if TYPE_CHECKING:
    from typing_extensions import Self

READY_S = 120.0
STOP_S = 10.0


def join(gateway: str, certificates: Path | None = None) -> None:
    """Have all traffic go to `gateway`, a worker's address as it is reached from here.

    MonarchInUseError: Monarch was used in this process before, in another way.
    """
    profile.use(certificates)
    try:
        attach(gateway)
    except RuntimeError as error:
        raise MonarchInUseError(
            f"This process has used Monarch already ({error}). A process has one Monarch client: "
            "attach before anything else of Monarch is used, and use a process for each job."
        ) from error
    except ConnectionLostError:
        raise
    except Exception as error:
        raise WorkersUnreachableError(f"Monarch could not connect to {gateway}: {error}") from error


def meshes_of(
    workers: Mapping[str, Sequence[str]], ready_s: float = READY_S
) -> dict[str, HostMesh]:
    """Attach a HostMesh for each name to the workers at these addresses; all of them answer."""
    meshes = {
        name: attach_to_workers(ca="trust_all_connections", workers=list(addresses), name=name)
        for name, addresses in workers.items()
    }
    deadline = time.monotonic() + ready_s
    for name, mesh in meshes.items():
        try:
            mesh.initialized.get(timeout=max(0.1, deadline - time.monotonic()))
        except ConnectionLostError:  # noqa: PERF203 - a few, and each takes a while
            raise
        except Exception as error:
            where = ", ".join(workers[name])
            raise WorkersUnreachableError(
                f"mesh {name} ({where}) did not answer: {error}"
            ) from error
    return meshes


class SharedHostMesh(HostMesh):  # type: ignore[misc]  # monarch has no types
    """A HostMesh whose workers serve other programs too: no call of this one ends them.

    `end_workers`: what `shutdown` does after a stop, where this program has requested the workers.
    """

    _owner = ""
    end_workers: Callable[[], object] | None = None
    _is_slice = False
    # Those of its slices as well.
    spawned: SpawnedProcs

    @classmethod
    def of(cls, mesh: Any, owner: str, spawned: SpawnedProcs | None = None) -> Self:
        """Return the mesh itself as one of this class; `owner` is named in errors."""
        mesh.__class__ = cls
        shared: Self = mesh
        shared._owner = owner
        shared.spawned = spawned or SpawnedProcs()
        return shared

    def spawn_procs(self, *arguments: Any, **options: Any) -> Any:
        """Spawn procs as Monarch does; they are noted in `spawned`."""
        procs = super().spawn_procs(*arguments, **options)
        self.spawned.add(procs)
        return procs

    def _new_with_shape(self, shape: Any) -> Self:
        # A slice has the workers of others too.
        shared = self.of(super()._new_with_shape(shape), self._owner, self.spawned)
        shared._is_slice = True
        return shared

    def stop(self) -> Any:
        """Stop the procs that were spawned here, then the mesh: as Monarch does, or not for long.

        Procs that Monarch stops with their host mesh stay listed there, as if they had died.
        """
        if not self._is_slice:
            _wait_apart(self.spawned.end)
        return super().stop()

    def shutdown(self) -> Any:
        """Stop the mesh and end its workers, at once. SharedWorkersError: they are those of others.

        A slice has no workers of its own.
        """
        if self.end_workers is None or self._is_slice:
            raise SharedWorkersError(
                f"shutdown() would end the workers of {self._owner} for every program. "
                "Use stop(): it ends the processes of this program."
            )
        stopping = self.stop()
        _wait_apart(partial(stopping.get, timeout=STOP_S))
        self.end_workers()
        return stopping

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    def with_python_executable(self, python_executable: str) -> Self:
        """Return a mesh that uses this interpreter; its workers are shared as well."""
        mesh = super().with_python_executable(python_executable)
        shared = self.of(mesh, self._owner, self.spawned)
        shared.end_workers, shared._is_slice = self.end_workers, self._is_slice
        return shared


def _wait_apart(wait: Callable[[], object]) -> None:
    """Call what waits for Monarch in a thread: in a running event loop its own waits warn."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(wait).result()


def stop(meshes: Mapping[str, Any]) -> None:
    """Let actors clean up and processes end, as far as they do within some seconds.

    The workers go on.
    """
    if not meshes:
        return
    # A loss from here on is expected: Monarch would interrupt the program for it.
    monarch.actor.unhandled_fault_hook = lambda _failure: None
    deadline = time.monotonic() + STOP_S
    for stopping in [mesh.stop() for mesh in meshes.values()]:
        # Of whatever kind it is: the program has finished with the mesh.
        with suppress(Exception):
            stopping.get(timeout=max(0.1, deadline - time.monotonic()))
