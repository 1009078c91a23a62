"""The driver of a job with two meshes: generators make numbers, trainers add them up."""

from __future__ import annotations

import os
import sys

from monarch.actor import Actor, current_rank, endpoint
from mportal_runtime import meshes


class Generator(Actor):
    """Makes the numbers of one batch."""

    @endpoint
    def batch(self, size: int) -> list[int]:
        """`size` numbers that no other generator makes."""
        first = current_rank().rank * size
        return list(range(first, first + size))


class Trainer(Actor):
    """Learns from numbers: it adds them."""

    @endpoint
    def learn(self, numbers: list[int]) -> int:
        """The sum."""
        return sum(numbers)

    @endpoint
    def node(self) -> str:
        """The node that this process is on."""
        return os.environ["SKYPILOT_NODE_RANK"]


def main() -> int:
    """Return 0 when the trainers agree on the right sum."""
    generators = meshes.generators.spawn_procs().spawn("generators", Generator)
    trainers = meshes.trainers.spawn_procs().spawn("trainers", Trainer)
    nodes = sorted(trainers.node.call().get(timeout=60).values())
    print(f"trainers are on nodes {', '.join(nodes)}")

    batches = list(generators.batch.call(100).get(timeout=60).values())
    numbers = [number for batch in batches for number in batch]
    sums = list(trainers.learn.call(numbers).get(timeout=60).values())
    print(f"{len(batches)} generator(s) made {len(numbers)} numbers, the trainers say {sums}")
    return 0 if sums == [sum(range(len(numbers)))] * len(nodes) else 1


if __name__ == "__main__":
    sys.exit(main())
