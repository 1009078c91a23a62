"""Attach a driver to the meshes that the runner has prepared, and stop them at its end.

Workers stay until the attempt ends: another program of the job can attach to them.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from .admin import Admin
from .reporting import end, has_fault, note_fault

if TYPE_CHECKING:
    from typing import Any, Collection, Iterator

PLAN_VARIABLE = "MPORTAL_RUNTIME_FILE"
# How long a driver's exit may wait for actors to clean up.
_STOP_TIMEOUT_S = 5.0


class MeshesError(RuntimeError):
    """An error with the meshes; the message contains the reason and the next step."""


class UnknownMeshError(MeshesError, AttributeError, KeyError):
    """An unknown name of a mesh."""

    # KeyError would print the text in quotes.
    __str__ = Exception.__str__


class AttachError(MeshesError):
    """A failure of Monarch to attach to workers that listen."""

    def __init__(self, mesh: str, addresses: list[str], why: Exception) -> None:
        where = ", ".join(addresses)
        super().__init__(
            f"mesh {mesh!r} ({where}) did not answer ({why!r}): a worker is out of reach, or a "
            "program of this job has ended it with shutdown()"
        )
        self.report_fields = {"kind": "monarch"}


class TransportError(MeshesError):
    """A transport of Monarch that the workers cannot reach."""

    def __init__(self, wanted: str) -> None:
        super().__init__(
            "Monarch uses Unix sockets in this process, which the workers cannot reach: remove "
            "HYPERACTOR_MESH_DEFAULT_TRANSPORT from `envs` and enable_transport() from this "
            f"program, or name {wanted!r} there"
        )


class PythonMismatchError(MeshesError):
    """A driver whose Python differs from the workers', with which Monarch would crash."""

    def __init__(self, mesh: str, workers: str) -> None:
        driver = "{}.{}".format(*sys.version_info[:2])
        super().__init__(
            f"this driver runs Python {driver}, but the workers of mesh {mesh!r} run {workers}: "
            f"start `run` with the workers' interpreter (this one is {sys.executable})"
        )
        self.report_fields = {
            "kind": "python_mismatch",
            "driver_python": driver,
            "worker_python": workers,
        }


class Meshes:
    """The job's meshes by name: `meshes.trainers` or `meshes["trainers"]`, a `HostMesh` each.

    A mesh is attached at its first use; later uses return the same one.
    """

    def __init__(self) -> None:
        self._attached: dict[str, Any] = {}
        self._addresses: dict[str, list[str]] = {}
        # Those of other jobs, which end with this driver.
        self._further: set[str] = set()
        self._admin = Admin()
        # Two threads may attach at once; the process has one client of Monarch.
        self._lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Any:
        if name not in self._attached:
            with self._lock:
                if name not in self._attached:
                    self._attached[name] = self._attach(name)
            self._admin.start()
        return self._attached[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_plan()["meshes"])

    def __len__(self) -> int:
        return len(_plan()["meshes"])

    def __dir__(self) -> list[str]:
        return list(self)

    def _attach(self, name: str) -> Any:
        plan = _plan()
        if name not in plan["meshes"]:
            names = ", ".join(sorted(plan["meshes"]))
            raise UnknownMeshError(f"no mesh is called {name!r}; this job has: {names}")
        return self._attach_to(name, plan["meshes"][name], plan)

    def check_new(self, name: str) -> None:
        """Refuse a further mesh with the name of another, and outside of a Monarch job."""
        if name in self._attached or name in _plan()["meshes"]:
            raise MeshesError(f"this job has a mesh {name!r} already: use another name")

    def attach_further(self, name: str, workers: list[dict[str, Any]]) -> None:
        """Attach the workers of another job as mesh `name`."""
        with self._lock:
            self.check_new(name)
            self._attached[name] = self._attach_to(name, workers, _plan())
            self._further.add(name)

    def end(self, name: str) -> bool:
        """Shut a mesh down, and with it its workers. Whether there was the mesh."""
        with self._lock:
            mesh = self._attached.pop(name, None)
        if mesh is not None:
            # A thread of its own, since the driver may be in an event loop.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(asyncio.run, _end_one(name, mesh, self._addresses[name])).result()
        return mesh is not None

    def _attach_to(self, name: str, workers: list[dict[str, Any]], plan: dict[str, Any]) -> Any:
        _check_python(name, workers)
        actor = _import_monarch()
        if not self._attached:
            self._prepare(actor, plan["transport"])
        addresses = [worker["address"] for worker in workers]
        mesh = actor.attach_to_workers(
            ca="trust_all_connections", workers=addresses, name=name.replace("-", "_")
        )
        try:
            mesh.initialized.get(timeout=plan["attach_timeout_s"])
        except Exception as error:
            raise AttachError(name, addresses, error) from error
        self._addresses[name] = addresses
        return mesh

    def _prepare(self, actor: Any, transport: str) -> None:
        """Set the fault hook, transport and exit hooks of Monarch, once a process."""
        default_hook = actor.unhandled_fault_hook

        def report_fault(failure: Any) -> None:
            note_fault(str(failure.report()))

        # A hook of the user's own stays.
        if default_hook.__module__.startswith("monarch."):
            actor.unhandled_fault_hook = report_fault
        _enable(actor, transport)
        # After Monarch's own end: a driver that ends for a loss is watched for as long as it is.
        atexit.register(self._leave, os.getpid())
        # Monarch registers the end of its client when the client is made, which is before any
        # mesh can be used. What is registered later runs earlier: we need the client.
        actor.context()
        atexit.register(self._stop, os.getpid())

    def _stop(self, pid: int) -> None:
        """Let actors clean up; end the workers of other jobs, which would stay."""
        if pid != os.getpid():
            return  # a forked child is not the driver
        end()
        if has_fault():
            return  # where a worker is dead, this would hang
        # The meshes are about to be ended.
        self._admin.end()
        if self._attached:
            asyncio.run(_end_all(dict(self._attached), self._further))

    def _leave(self, pid: int) -> None:
        """End the watch of the driver, which exits now and is no loss."""
        if pid == os.getpid():
            self._admin.end()


def _enable(actor: Any, transport: str) -> None:
    """Have Monarch listen where workers reach this driver.

    The driver's environment names the same transport, so `this_host()` may come before any mesh.
    """
    try:
        actor.enable_transport(transport)
    except RuntimeError as error:  # it is in use already
        from monarch._rust_bindings.monarch_hyperactor import channel  # noqa: PLC0415
        from monarch.config import get_global_config  # noqa: PLC0415

        in_use = get_global_config()["default_transport"]
        if in_use == channel.BindSpec(channel.ChannelTransport.Unix):
            raise TransportError(transport) from error


async def _end_one(name: str, mesh: Any, addresses: list[str]) -> None:
    """Stop a mesh, then end its workers, in a driver that goes on.

    In this order no process is lost: `shutdown()` alone may end the workers while Monarch watches
    their processes, and would report a fault.
    """
    import monarch.actor  # noqa: PLC0415

    try:
        await asyncio.wait_for(mesh.stop().as_asyncio(), _STOP_TIMEOUT_S)
        hosts = monarch.actor.attach_to_workers(
            ca="trust_all_connections", workers=addresses, name=name.replace("-", "_") + "_end"
        )
        await asyncio.wait_for(hosts.initialized.as_asyncio(), _STOP_TIMEOUT_S)
    except Exception as error:  # noqa: BLE001 - the caller ends the job itself
        _report(f"mesh {name!r} could not be stopped ({error!r})")
    else:
        await _end_all({name: hosts}, {name})


async def _end_all(meshes: dict[str, Any], shut_down: Collection[str]) -> None:
    """Stop all meshes at once, and report those that do not stop in time.

    The workers of those in `shut_down` end as well. In an event loop, since Monarch starts the work
    only when it is awaited.
    """
    stops = {
        name: (mesh.shutdown() if name in shut_down else mesh.stop()).as_asyncio()
        for name, mesh in meshes.items()
    }
    await asyncio.wait(stops.values(), timeout=_STOP_TIMEOUT_S)
    for name, stop in stops.items():
        if not stop.done():
            # Actors that clean up, or a busy machine: no fault of the program, which has ended.
            _report(f"mesh {name!r} is still stopping after {_STOP_TIMEOUT_S:g} s")
        elif not isinstance(stop.exception(), (RuntimeError, type(None))):
            # A RuntimeError: the driver has shut it down itself.
            _report(f"mesh {name!r} could not be stopped ({stop.exception()!r})")


def _report(problem: str) -> None:
    with contextlib.suppress(Exception):  # a program may have closed its stderr
        sys.stderr.write(f"mportal: {problem}; its workers end with the job\n")


def _plan() -> dict[str, Any]:
    path = os.environ.get(PLAN_VARIABLE)
    if not path:
        raise MeshesError(
            "meshes are there only in the driver of a Monarch job: `run` of a job with "
            "`portal.meshes`, on rank 0"
        )
    plan: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return plan


def _check_python(name: str, workers: list[dict[str, Any]]) -> None:
    mine = "{}.{}".format(*sys.version_info[:2])
    for worker in workers:
        if worker["python"] and worker["python"] != mine:
            raise PythonMismatchError(name, worker["python"])


def _import_monarch() -> Any:
    try:
        import monarch.actor  # noqa: PLC0415 - a driver that needs no mesh must not pay for it
    except ImportError as error:
        raise MeshesError(
            f"Monarch cannot be imported by {sys.executable} ({error}): install torchmonarch for "
            "it, or start `run` with the workers' interpreter"
        ) from error
    return monarch.actor
