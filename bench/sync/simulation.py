"""A sync of many nodes in one process, whose streams are in memory."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

from tests.code_cluster import CodeCluster
from tests.code_trees import Model, plant

OLD: Model = {"package": {"changed.py": b"old"}}
NEW: Model = {"package": {"changed.py": b"new" * 2000}}


class Simulated(NamedTuple):
    """The most copies of the change that a node sends, and the streams from the head to a leaf."""

    copies: float
    depth: int
    seconds: float


def simulate(folder: Path, ranks: int) -> Simulated:
    """Have so many nodes switch to a change. SystemExit: not all have."""
    return asyncio.run(_simulate(folder, ranks))


async def _simulate(folder: Path, ranks: int) -> Simulated:
    cluster = CodeCluster(folder, ranks, OLD)
    sources: dict[int, int] = {}

    def note(rank: int, to: int, service: str) -> None:
        if service == "blocks":
            sources[rank] = to

    cluster.on_dial = note
    store = cluster.nodes[0].generations.store
    before = store.size_bytes
    tree = plant(store, NEW)
    size = store.size_bytes - before
    began_at = time.perf_counter()
    switched = await cluster.switch(tree)
    seconds = time.perf_counter() - began_at
    if switched.ranks != ranks or set(cluster.currents()) != {tree}:
        raise SystemExit(f"bench.sync: {switched}")
    copies = max(node.blocks.sent_bytes for node in cluster.nodes.values()) / size
    await cluster.close()
    return Simulated(copies, max(_depth(rank, sources) for rank in sources), seconds)


def _depth(rank: int, sources: dict[int, int]) -> int:
    depth = 0
    while rank:
        rank = sources[rank]
        depth += 1
    return depth
