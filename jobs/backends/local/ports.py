"""Choose the ports of a cluster: the specified ones, or others if a program uses those.

Every node has an address of its own, so only a program that listens on all addresses blocks a port
for all jobs. A program on a single address costs one slot (`slots.py`).
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

from jobs.backends.attempt_file import Ports, ports_of
from jobs.backends.local.processes import listener_on
from jobs.errors import BackendError
from monarch_client.spec.portal_keys import DEFAULT_PORT

# No slot uses this address: a port in use here is in use on every address.
_PROBED_ADDRESS = "127.63.255.254"
# Below the kernel's ephemeral ports.
_OTHER_PORTS = range(23000, 23200)


def choose_ports(spec: dict[str, Any], num_nodes: int) -> Ports | None:
    """Return replacement ports; None if the specified ones are free.

    BackendError: the port that the job itself sets is in use.
    """
    worker, hub, node = wanted = ports_of(spec)
    if has_workers(spec) and not _is_free(worker):
        if worker != DEFAULT_PORT:
            raise BackendError(
                f"Port {worker}, which portal.port sets, is used by {_user_of(worker)} on every "
                "address of this machine.",
                hint="Set another portal.port, or have that program stopped.",
            )
        worker = _another_than(hub, node)
    if num_nodes > 1 and not _is_free(hub):
        hub = _another_than(worker, node)
    if not _is_free(node):
        node = _another_than(worker, hub)
    chosen = Ports(worker, hub, node)
    return None if chosen == wanted else chosen


def needed_ports(spec: dict[str, Any], num_nodes: int, ports: Ports) -> list[tuple[int, int]]:
    """Return the (rank, port) pairs to listen on, in any job the port of each node's streams."""
    ranks = range(num_nodes)
    workers = [(rank, ports.workers) for rank in ranks] if has_workers(spec) else []
    hub = [(0, ports.hub)] if num_nodes > 1 else []
    return [*workers, *hub, *((rank, ports.nodes) for rank in ranks)]


def remarks_on(spec: dict[str, Any], ports: Ports) -> list[str]:
    """Return a line for the job's log about each replaced port."""
    uses = ("Monarch workers listen", "the nodes' runners meet", "shells are served")
    return [
        f"Port {wanted} is used by {_user_of(wanted)} on this machine: {use} on port {port}."
        for use, wanted, port in zip(uses, ports_of(spec), ports, strict=True)
        if port != wanted
    ]


def has_workers(spec: dict[str, Any]) -> bool:
    """Whether Monarch workers will listen on the job's nodes."""
    return bool(spec.get("portal", {}).get("meshes"))


def is_bindable(address: str, port: int) -> bool:
    """Whether no process listens on the port. BackendError: the address is not this machine's."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Connections of the last job may still be in TIME_WAIT; a listener is refused all the same.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise BackendError(
                f"The address {address} can't be used ({os.strerror(error.errno or 0)}): the local "
                "backend needs Linux, where all of 127.0.0.0/8 is this machine."
            ) from error
    return True


def _is_free(port: int) -> bool:
    return is_bindable(_PROBED_ADDRESS, port)


def _another_than(*used: int) -> int:
    for port in _OTHER_PORTS:
        if port not in used and _is_free(port):
            return port
    raise BackendError(
        f"None of the ports {_OTHER_PORTS[0]} to {_OTHER_PORTS[-1]} is free on this machine.",
        hint="Set portal.port to a port that is free there.",
    )


def _user_of(port: int) -> str:
    """Name the listener without its arguments, which may hold another job's secrets."""
    found = listener_on(port)
    return f"process {found[0]} ({found[1]})" if found else "another program"
