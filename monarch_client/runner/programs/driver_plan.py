"""The plan that `mportal_runtime` reads: the meshes, their workers and the transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Mapping

    from monarch_client.runner.base.config import AttemptConfig


def plan_of(config: AttemptConfig, pythons: Mapping[int, str]) -> dict[str, Any]:
    """Return the plan for the driver on rank 0; `pythons` are the workers' versions by rank."""
    meshes = {
        mesh: [
            {"rank": rank, "address": config.worker_address(rank), "python": pythons[rank]}
            for rank in ranks
        ]
        for mesh, ranks in config.ranks_of_meshes().items()
    }
    return {
        "meshes": meshes,
        "transport": transport_of(config),
        "attach_timeout_s": config.timeouts.workers_s,
    }


def transport_of(config: AttemptConfig) -> str:
    """Return the transport on which the driver listens for connections from the workers."""
    scheme = "tls" if config.tls else "tcp"
    return f"{scheme}://{config.address_of(0)}:0"
