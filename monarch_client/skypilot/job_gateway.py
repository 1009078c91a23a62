"""The Monarch of this process, joined to a job's workers: once, and for the life of the process."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import monarch.actor
from monarch.actor import attach, attach_to_workers

from monarch_client.runner.programs.environment import MONARCH_TUNING
from monarch_client.skypilot.job_errors import MonarchInUseError, UnreachableError

READY_S = 120.0
STOP_S = 10.0
_FILES = {"CERT": "leaf.crt", "KEY": "leaf.key", "CA": "ca.crt"}


def join(gateway: str, certificates: Path) -> None:
    """Have all traffic go to `gateway`, a worker's address as seen from here.

    MonarchInUseError: Monarch was used in this process before, in another way.
    """
    _use(certificates)
    try:
        attach(gateway)
    except RuntimeError as error:
        raise MonarchInUseError(
            f"This process has used Monarch already ({error}). A process has one Monarch client: "
            "call state() before anything else of Monarch's, and use a process for each job."
        ) from error
    except Exception as error:
        raise UnreachableError(f"Monarch could not connect to {gateway}: {error}") from error


def meshes_of(workers: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Attach a HostMesh for each name to the workers at these addresses; all of them answer."""
    meshes = {
        name: attach_to_workers(ca="trust_all_connections", workers=list(addresses), name=name)
        for name, addresses in workers.items()
    }
    for name, mesh in meshes.items():
        try:
            mesh.initialized.get(timeout=READY_S)
        except Exception as error:  # noqa: PERF203 - a few, and each takes a while
            where = ", ".join(workers[name])
            raise UnreachableError(f"mesh {name} ({where}) did not answer: {error}") from error
    return meshes


def stop(meshes: Mapping[str, Any]) -> None:
    """Let actors clean up and procs end, as far as they do so in time."""
    if not meshes:
        return
    # What is lost now was given up: Monarch would interrupt the program for it.
    monarch.actor.unhandled_fault_hook = lambda _failure: None
    deadline = time.monotonic() + STOP_S
    # Not shut down: the head carries the answers of the others.
    for stopping in [mesh.stop() for mesh in meshes.values()]:
        # Whatever it is: their machines are ended next.
        with suppress(Exception):
            stopping.get(timeout=max(0.1, deadline - time.monotonic()))


def _use(certificates: Path) -> None:
    """Use these certificates: Monarch, which reads its environment at import, reads it again."""
    from monarch._rust_bindings.monarch_hyperactor.config import (  # noqa: PLC0415
        reload_config_from_env,
    )

    for name, value in MONARCH_TUNING.items():
        os.environ.setdefault(name, value)
    for name, file in _FILES.items():
        os.environ[f"HYPERACTOR_TLS_{name}"] = str(certificates / file)
    reload_config_from_env()
