"""Which clouds the portal has credentials of, and whether SkyPilot can use them."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.backends import clouds, registry
from jobs.backends.base import CloudState, is_keeping
from jobs.backends.clouds import CloudEntry
from jobs.errors import BackendUnavailableError
from jobs.permissions import Actor, require_clouds


@dataclass(frozen=True, slots=True)
class CloudView:
    """One cloud that SkyPilot knows: whether it can be used, and why not."""

    name: str
    is_enabled: bool
    reason: str


def cloud_list(actor: Actor | None) -> list[CloudEntry]:
    """What was added, by kind and name; never the credentials themselves."""
    require_clouds(actor)
    return clouds.listed(clouds.own_home())


def cloud_check(actor: Actor | None) -> list[CloudView]:
    """What SkyPilot says of each cloud, asked now. BackendError: it says nothing (yet)."""
    require_clouds(actor)
    found: list[CloudState] = []
    keepers = [each for each in map(registry.get, registry.names()) if is_keeping(each)]
    if not keepers:
        raise BackendUnavailableError("SkyPilot is not enabled here; it is once a cloud was added.")
    for backend in keepers:
        found += backend.clouds()
    rows = [CloudView(each.name, each.is_enabled, each.reason) for each in found]
    return sorted(rows, key=lambda row: (not row.is_enabled, row.name.lower()))
