"""What SkyPilot tells a node of itself: which one it is, and where the others are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.base.config import ConfigError

if TYPE_CHECKING:
    from typing import Mapping


class SkyPilotNode(NamedTuple):
    """This node's rank, and the private addresses of all, in rank order."""

    rank: int
    addresses: tuple[str, ...]


def skypilot_node(environ: Mapping[str, str]) -> SkyPilotNode:
    """Read it from the environment of a task's `run`; ConfigError if that is none."""
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
