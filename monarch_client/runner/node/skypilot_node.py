"""Read a node's rank and the addresses of all nodes from SkyPilot's variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.base.config import ConfigError

if TYPE_CHECKING:
    from typing import Mapping


class SkyPilotNode(NamedTuple):
    """A node's rank, and the private addresses of all nodes in rank order."""

    rank: int
    addresses: tuple[str, ...]


def skypilot_node(environ: Mapping[str, str]) -> SkyPilotNode:
    """Parse the environment of a task's `run`. ConfigError if it is incomplete."""
    addresses = tuple(environ.get("SKYPILOT_NODE_IPS", "").split())
    try:
        rank = int(environ.get("SKYPILOT_NODE_RANK", ""))
    except ValueError:
        rank = -1
    if not 0 <= rank < len(addresses):
        raise ConfigError(
            "this is not the run section of a SkyPilot task: SKYPILOT_NODE_RANK is {!r} and "
            "SKYPILOT_NODE_IPS names {} nodes".format(
                environ.get("SKYPILOT_NODE_RANK"), len(addresses)
            )
        )
    return SkyPilotNode(rank, addresses)
