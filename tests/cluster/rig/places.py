"""The paths and addresses of the rig.

All of its files are on tmpfs in a mount namespace of the rig's own.
"""

from __future__ import annotations

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
# What one run leaves to the next: packages, never state.
CACHE = CHECKOUT / ".cache" / "rig"
# Logs outlive the rig, so that a failure can be understood.
LOGS = Path(os.environ.get("RIG_LOGS", CHECKOUT / ".results" / "rig"))

RUN = Path("/run/rig")
HOME = RUN / "home"
# Each node has a tmpfs of its own here.
NODE_LOCAL = RUN / "local"
NODE_PIDS = RUN / "nodes"
FAULTS = RUN / "faults"
LOGIN_KEY = RUN / "login_key"
MACHINE_FILE = RUN / "machine.json"

UV = CACHE / "bin" / "uv"
UV_CACHE = CACHE / "uv"
WHEELS = CACHE / "home" / ".sky" / "wheels"

SSH_PORT = 2222
PROXY_PORT = 3128
SUBNET = "10.77.0"
HERE = f"{SUBNET}.1"
BRIDGE = "rig0"
PARTITIONS = ("main", "spare")
GPUS_PER_NODE = 8


def node_names(count: int) -> tuple[str, ...]:
    """List the names of `count` nodes: rig-1, rig-2, ..."""
    return tuple(f"rig-{number}" for number in range(1, count + 1))


def address_of(node: str) -> str:
    """Return a node's own address, which stays the same when the node is restarted."""
    return f"{SUBNET}.{10 + int(node.rpartition('-')[2])}"
