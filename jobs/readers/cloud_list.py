"""The clouds of which the portal has credentials, and whether SkyPilot can use them."""

from __future__ import annotations

from jobs.backends import clouds, registry
from jobs.backends.base import CloudState, is_keeping
from jobs.errors import BackendUnavailableError
from jobs.permissions import Actor, require_clouds
from monarch_client.wire import account as wire


def cloud_list(actor: Actor | None) -> list[wire.CloudEntry]:
    """List the clouds that were added, by kind and name; never the credentials themselves."""
    require_clouds(actor)
    return [wire.CloudEntry(**each._asdict()) for each in clouds.listed(clouds.own_home())]


def cloud_check(actor: Actor | None) -> list[wire.CloudState]:
    """Return SkyPilot's report on each cloud, requested now. BackendError: there is none (yet)."""
    require_clouds(actor)
    found: list[CloudState] = []
    keepers = [each for each in map(registry.get, registry.names()) if is_keeping(each)]
    if not keepers:
        raise BackendUnavailableError("SkyPilot is not enabled here; it is once a cloud was added.")
    for backend in keepers:
        found += backend.clouds()
    rows = [
        wire.CloudState(name=each.name, is_enabled=each.is_enabled, reason=each.reason)
        for each in found
    ]
    return sorted(rows, key=lambda row: (not row.is_enabled, row.name.lower()))
