"""The backends of this installation, and the choice of one for a job."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage

from jobs.backends.base import (
    ClusterKeeper,
    ComputeBackend,
    PullingBackend,
    is_keeping,
    is_pulling,
)
from jobs.backends.ended_names import EndedNames
from jobs.backends.fake.backend import FakeBackend
from jobs.backends.local.backend import LocalBackend, LocalOptions
from jobs.backends.skypilot.backend import SkyPilotBackend
from jobs.backends.skypilot.calls import SkyPilotCalls
from jobs.backends.skypilot.server import directory as skypilot_directory
from jobs.backends.skypilot.server import server_options
from jobs.backends.skypilot.staging import Staging, StagingOptions
from jobs.errors import BackendError, BackendUnavailableError
from monarch_client.skypilot.caller import CallerOptions, SkyCaller

SKYPILOT = "skypilot"

# As root the leases of all installations are together: a user id must never be leased twice.
LEASES_OF_ROOT = Path("/var/lib/mportal/slots")


def names() -> list[str]:
    """List the enabled backends, the default one first."""
    enabled = {
        "fake": _fake_directory() is not None,
        "local": settings.MPORTAL_LOCAL_BACKEND,
        "skypilot": server_options() is not None,
    }
    return [name for name, is_enabled in enabled.items() if is_enabled]


def get(name: str) -> ComputeBackend:
    """Return the backend `name`. BackendUnavailableError: there is none, or it is not enabled."""
    fake = _fake_directory()
    if name == "fake" and fake is not None:
        return FakeBackend(fake)
    if name == "local" and settings.MPORTAL_LOCAL_BACKEND:
        return _local()
    if name == "skypilot" and (server := server_options()) is not None:
        return _skypilot(server)
    raise BackendUnavailableError(f"The backend {name!r} is not enabled here.")


def warm_up() -> None:
    """Have what takes seconds to begin with begin now. Returns at once."""
    if (server := server_options()) is not None:
        _skypilot(server).warm_up()


def pulling() -> dict[str, PullingBackend]:
    """Map names to the enabled backends whose frames the portal has to fetch."""
    enabled = {name: get(name) for name in names()}
    return {name: backend for name, backend in enabled.items() if is_pulling(backend)}


def keeping() -> dict[str, ClusterKeeper]:
    """Map names to the enabled backends whose machines cost money and can be seen by others."""
    enabled = {name: get(name) for name in names()}
    return {name: backend for name, backend in enabled.items() if is_keeping(backend)}


def backend_for(spec: dict[str, Any]) -> str:
    """Return the job's backend, by its `resources.infra`; the default backend without one.

    BackendUnavailableError: nothing here runs such jobs.
    """
    resources = spec.get("resources") or {}
    infra = str(resources.get("infra") or resources.get("cloud") or "").lower().strip("*")
    enabled = names()
    if infra in enabled:
        return infra
    if infra == "local":
        raise BackendUnavailableError("The local backend is not enabled here; name another infra.")
    if infra or _has_choices(resources):
        if SKYPILOT not in enabled:
            raise BackendUnavailableError(
                f"Infra {infra or 'of any cloud'} needs SkyPilot, which is not enabled here: an "
                "administrator adds a cloud with `mportal admin cloud add`."
            )
        return SKYPILOT
    if not enabled:
        raise BackendUnavailableError("No backend is enabled here; name an infra.")
    return enabled[0]


def _has_choices(resources: dict[str, Any]) -> bool:
    return bool(resources.get("any_of") or resources.get("ordered"))


def portal_url_for(backend_name: str) -> str:
    """Return the address under which the nodes of a backend reach the portal."""
    return str(settings.MPORTAL_NODE_URL if backend_name == SKYPILOT else settings.MPORTAL_URL)


def problems_of(spec: dict[str, Any]) -> list[tuple[str, str]]:
    """List why the spec's backend would not accept it, as (path, sentence); empty if it would."""
    try:
        return get(backend_for(spec)).check(spec)
    except BackendUnavailableError as error:
        return [("resources.infra", error.message)]


def _fake_directory() -> Path | None:
    directory = getattr(settings, "MPORTAL_FAKE_BACKEND", "")
    return Path(directory) if directory else None


@cache
def _skypilot(server: CallerOptions) -> SkyPilotBackend:
    """Make this process's only SkyPilot backend: its caller's child imports SkyPilot once."""
    root = skypilot_directory()
    options = StagingOptions(
        directory=root / "staging",
        carrier=settings.MPORTAL_SKYPILOT_CARRIER,
        torchmonarch=version("torchmonarch"),
    )
    return SkyPilotBackend(
        SkyPilotCalls(SkyCaller(server)),
        Staging(options, open_upload),
        EndedNames(root / "ended"),
    )


def _local() -> LocalBackend:
    directory = Path(settings.MPORTAL_HOME) / "local"
    options = LocalOptions(
        directory=directory,
        leases=LEASES_OF_ROOT if os.geteuid() == 0 else directory / "slots",
        nodes=settings.MPORTAL_LOCAL_NODES,
        portal_file=settings.MPORTAL_PORTAL_FILE,
    )
    return LocalBackend(options, open_upload)


@contextmanager
def open_upload(reference: str) -> Iterator[Path]:
    """Open an upload as a file of this machine, for as long as the block lasts."""
    blob = f"uploads/{reference.removeprefix('upload:')}.tar.gz"
    if not default_storage.exists(blob):
        raise BackendError(f"The folder {reference} is not in the blob store any more.")
    with default_storage.open(blob) as source, tempfile.NamedTemporaryFile() as copy:
        shutil.copyfileobj(source, copy)
        copy.flush()
        yield Path(copy.name)
