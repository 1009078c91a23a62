"""Capacities of backends, if jobs can start there now."""

from __future__ import annotations

from jobs.backends import registry
from jobs.errors import BackendUnavailableError
from jobs.ground.disk_space import shortage
from jobs.scheduling.limits import GPUS, NODES


def capacity_of(backend_name: str) -> dict[str, float]:
    """Return how many nodes and GPUs a backend has, where it limits them.

    BackendError: nothing can start there now; its message says why.
    """
    if why := shortage():
        raise BackendUnavailableError(why)
    backend = registry.get(backend_name)
    counts = {NODES: backend.capacity_nodes(), GPUS: backend.capacity_gpus()}
    return {what: float(count) for what, count in counts.items() if count is not None}
