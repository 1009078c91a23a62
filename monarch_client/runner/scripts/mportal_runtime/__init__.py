"""A driver's way to its workers: `from mportal_runtime import meshes`, then `meshes.trainers`.

The portal puts this module on the PYTHONPATH of a Monarch job. Monarch itself is imported when a
mesh is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import requesting
from .attaching import Meshes, MeshesError, PythonMismatchError, UnknownMeshError
from .logging_metrics import log
from .reporting import report_uncaught
from .requesting import (
    MeshCapacityError,
    MeshEndedError,
    MeshQuotaError,
    MeshRefusedError,
    MeshRequestError,
    MeshTimeoutError,
    RequestedMesh,
)

if TYPE_CHECKING:
    from typing import Any, Mapping

__all__ = [
    "MeshCapacityError",
    "MeshEndedError",
    "MeshQuotaError",
    "MeshRefusedError",
    "MeshRequestError",
    "MeshTimeoutError",
    "Meshes",
    "MeshesError",
    "PythonMismatchError",
    "RequestedMesh",
    "UnknownMeshError",
    "log",
    "meshes",
    "request_mesh",
]

meshes = Meshes()


def request_mesh(
    name: str,
    hosts: int = 1,
    *,
    resources: Mapping[str, Any] | None = None,
    timeout: float = 600.0,
    spec: Mapping[str, Any] | None = None,
) -> RequestedMesh:
    """Return a further mesh of `hosts` nodes: the workers of a child job, queued like any other.

    `resources` are those of a job specification, and `spec` its other keys. Code, environment,
    queue and, without `resources`, the kind of machines are this job's own. The child ends with
    this attempt, or by `release()`. MeshRequestError without ready workers after `timeout` seconds.
    """
    given = dict(spec or {})
    if resources is not None:
        given["resources"] = dict(resources)
    return requesting.request_mesh(meshes, name, hosts, timeout=timeout, spec=given)


report_uncaught()
