"""The driver: adds up one number per process on two hosts, and checks the sum.

It runs once, on rank 0. The portal has started a Monarch worker on every host; `meshes.trainers`
is the mesh of those hosts.
"""

from __future__ import annotations

import os
import socket
import sys

from monarch.actor import Actor, current_rank, endpoint
from mportal_runtime import meshes

PROCS_PER_HOST = 2
ROUNDS = 3


class Trainer(Actor):
    """Lives in each process of the mesh and keeps a running total."""

    def __init__(self) -> None:
        self.total = 0

    @endpoint
    def where(self) -> str:
        """Tell where this actor lives."""
        host, node = socket.gethostname(), os.environ["SKYPILOT_NODE_RANK"]
        return f"rank {current_rank().rank}: process {os.getpid()} on node {node} ({host})"

    @endpoint
    def step(self, number: int) -> int:
        """One round of work: returns this rank's part of the sum."""
        part = number * (current_rank().rank + 1)
        self.total += part
        print(f"round {number}: my part is {part}, my total {self.total}")
        return part


def main() -> int:
    """Return 0 when every round gave the right sum."""
    hosts = meshes.trainers
    print(f"hello from the driver: {hosts.sizes['hosts']} hosts are attached")
    procs = hosts.spawn_procs(per_host={"procs": PROCS_PER_HOST})
    trainers = procs.spawn("trainers", Trainer)
    for place in trainers.where.call().get(timeout=120).values():
        print(f"  {place}")

    size = hosts.sizes["hosts"] * PROCS_PER_HOST
    for number in range(1, ROUNDS + 1):
        parts = list(trainers.step.call(number).get(timeout=60).values())
        expected = number * size * (size + 1) // 2
        print(f"round {number}: sum over {len(parts)} ranks = {sum(parts)}, expected {expected}")
        if len(parts) != size or sum(parts) != expected:
            print("the sum is wrong", file=sys.stderr)
            return 1
    print("all sums are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
