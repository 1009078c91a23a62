"""Monarch on SkyPilot's machines in one program, without a portal. docs/howto/skypilot-job.md

python examples/skypilot_quickstart.py --hosts 2 --accelerators H100:8 --infra aws
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
from typing import Any

from monarch.actor import Actor, current_rank, endpoint

from monarch_client.skypilot import SkyPilotJob


class Counter(Actor):
    """Counts, in a process of its own on some host."""

    def __init__(self, start: int) -> None:
        self.value = start

    @endpoint
    def increment(self) -> None:
        """Count one."""
        self.value += 1

    @endpoint
    def get(self) -> int:
        """How far it is."""
        return self.value


class Trainer(Actor):
    """Stands for whatever one process of a training does."""

    @endpoint
    def where(self) -> str:
        """Rank, host and node."""
        node = os.environ["SKYPILOT_NODE_RANK"]
        return f"{dict(current_rank())} on {socket.gethostname()}, node {node}"

    @endpoint
    def step(self, number: int) -> float:
        """A loss that becomes smaller."""
        return 1.0 / (number + 1)


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=2, help="machines (2)")
    parser.add_argument("--procs", type=int, default=1, help="processes on each (1)")
    parser.add_argument("--accelerators", help="GPUs of each machine, such as H100:8")
    parser.add_argument("--infra", help="where, as SkyPilot writes it: aws, slurm/main, ...")
    parser.add_argument("--cluster-name", help="a name of your own")
    parser.add_argument("--keep-minutes", type=int, help="leave the machines up for so long")
    parser.add_argument("--reach", choices=["auto", "direct", "tunnel"], default="auto")
    return parser.parse_args()


def work(trainers: Any, procs: int) -> None:
    """Two kinds of actors on one mesh."""
    mesh = trainers.spawn_procs(per_host={"gpus": procs})
    counters = mesh.spawn("counters", Counter, 0)
    for _ in range(3):
        counters.increment.call().get()
    counts = list(counters.get.call().get().values())
    print("counted", counts)
    actors = mesh.spawn("trainers", Trainer)
    for place in actors.where.call().get().values():
        print("trainer", place)
    for number in range(3):
        losses = list(actors.step.call(number).get().values())
        print(f"step {number}: loss {sum(losses) / len(losses):.3f}")
    mesh.stop().get()


def main() -> None:
    """Launch, or find what an earlier run has kept; work; take the machines down or keep them."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    asked = options()
    wanted = {"infra": asked.infra, "accelerators": asked.accelerators}
    job = SkyPilotJob(
        meshes={"trainers": asked.hosts},
        resources={key: value for key, value in wanted.items() if value},
        cluster_name=asked.cluster_name,
        idle_minutes_to_autostop=asked.keep_minutes,
        reach=asked.reach,
    )
    work(job.state().trainers, asked.procs)
    print("cluster", job.cluster_name)
    if asked.keep_minutes is None:
        job.kill()


if __name__ == "__main__":
    main()
