"""The meshes of a SkyPilotJob in this process, with errors of a SkyPilotJob. Imports monarch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from monarch_client.attaching import errors, meshes
from monarch_client.skypilot.job_errors import MonarchInUseError, UnreachableError

stop = meshes.stop


def join(gateway: str, certificates: Path) -> None:
    """Have all traffic go to `gateway`, a worker's address as seen from here.

    MonarchInUseError: Monarch was used in this process before, in another way.
    """
    with _own_errors():
        meshes.join(gateway, certificates)


def meshes_of(workers: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Attach a HostMesh for each name to the workers at these addresses; all of them answer."""
    with _own_errors():
        return meshes.meshes_of(workers)


@contextmanager
def _own_errors() -> Iterator[None]:
    try:
        yield
    except errors.MonarchInUseError as error:
        raise MonarchInUseError(str(error)) from error
    except errors.WorkersUnreachableError as error:
        raise UnreachableError(str(error)) from error
