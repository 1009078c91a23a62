"""Write attempt.json, which `monarch_client.runner.base.config` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jobs.backends.base import LaunchRequest
from monarch_client.runner.base.config import FORMAT
from monarch_client.skypilot.trust import Authority, authority_of, new_authority
from monarch_client.spec import PortalBlock
from monarch_client.spec.portal_keys import DEFAULT_PORT, PARENTS_DRIVER

LAST_PORT = 65535


class Ports(NamedTuple):
    """The ports of Monarch's workers, of the runner of rank 0, and of each node's streams."""

    workers: int
    hub: int
    nodes: int = DEFAULT_PORT + 2


def ports_of(spec: dict[str, Any]) -> Ports:
    """Return the ports that the specification sets: the workers' and the next two."""
    port = int(spec.get("portal", {}).get("port") or DEFAULT_PORT)
    hub = port + 1 if port < LAST_PORT else port - 1
    return Ports(port, hub, max(port, hub) + 1 if hub < LAST_PORT else port - 2)


def authority_for(request: LaunchRequest) -> Authority:
    """Return the attempt's authority: that of the seed, or without one a random one."""
    seed = request.authority_seed
    return authority_of(seed) if seed else new_authority(request.cluster_name)


def attempt_file(
    request: LaunchRequest,
    *,
    authority: Authority,
    addresses: Sequence[str] | None,
    grace_s: float,
) -> dict[str, Any]:
    """Build the content of attempt.json. Without `addresses` the node finds them out itself."""
    spec = request.spec
    port, hub_port, node_port = ports_of(spec)
    workdir = spec.get("workdir")
    nodes = None if addresses is None else _nodes(addresses)
    block = PortalBlock.from_dict(spec.get("portal", {}))
    return {
        "format": FORMAT,
        "attempt_id": request.attempt_id,
        "job_id": request.job_id,
        "attempt_number": request.attempt_number,
        "project": request.project_slug,
        "job_name": request.job_name,
        "portal_url": request.portal_url,
        "portal_file": None,
        "token": request.token,
        "driver_token": request.driver_token,
        "nodes": nodes,
        "git": workdir if isinstance(workdir, dict) else None,
        "setup": spec.get("setup"),
        "run": spec.get("run") or "",
        "envs": dict(spec.get("envs") or {}),
        # In their order, which the database does not keep.
        "meshes": block.meshes or None,
        "gateway": block.gateway,
        "serves_parent": block.driver == PARENTS_DRIVER,
        "port": port,
        "hub_port": hub_port,
        "node_port": node_port,
        "tls": {"ca_cert": authority.certificate, "ca_key": authority.key},
        "python": "python3",
        "timeouts": {"grace_s": grace_s},
        "metrics_s": request.metrics_s,
    }


def _nodes(addresses: Sequence[str]) -> list[dict[str, Any]]:
    return [{"rank": rank, "address": address} for rank, address in enumerate(addresses)]
