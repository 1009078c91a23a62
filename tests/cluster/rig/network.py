"""The rig's network: a bridge, and a cable from it to each node's own network."""

from __future__ import annotations

import socket

from tests.cluster.rig import places
from tests.cluster.rig.spaces import run


def make_bridge() -> None:
    """Make the bridge in this network namespace. This side of it is places.HERE."""
    ip("link", "set", "lo", "up")
    ip("link", "add", places.BRIDGE, "type", "bridge")
    ip("addr", "add", f"{places.HERE}/24", "dev", places.BRIDGE)
    ip("link", "set", places.BRIDGE, "up")


def plug_in(node: str, pid: int) -> None:
    """Connect the network of process `pid` to the bridge, as `node`."""
    cable = f"v-{node}"
    ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    ip("link", "set", cable, "master", places.BRIDGE, "up")


def bring_up_inside(node: str) -> None:
    """Give this namespace, already plugged in, the node's address."""
    ip("link", "set", "lo", "up")
    ip("addr", "add", f"{places.address_of(node)}/24", "dev", "eth0")
    ip("link", "set", "eth0", "up")
    ip("route", "add", "default", "via", places.HERE)


def proxy_listener() -> socket.socket:
    """Open the port through which nodes reach the package index."""
    return socket.create_server((places.HERE, places.PROXY_PORT), backlog=128)


def ip(*words: str) -> None:
    run("ip", *words)
