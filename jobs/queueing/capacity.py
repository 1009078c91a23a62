"""What a backend has for jobs, if any could start there now."""

from __future__ import annotations

from jobs.backends import registry
from jobs.errors import BackendUnavailableError
from jobs.ground.disk_space import shortage


def capacity_of(backend_name: str) -> int | None:
    """Nodes; None without a limit. BackendError: nothing can start there now; it says why."""
    if why := shortage():
        raise BackendUnavailableError(why)
    return registry.get(backend_name).capacity_nodes()
