# ruff: noqa: T201 - the log is what a test reads
"""A Monarch driver: multiply on the GPU of each proc, and read its memory as an RDMABuffer."""

from __future__ import annotations

import torch
from monarch.actor import Actor, endpoint
from monarch.rdma import RDMABuffer
from mportal_runtime import meshes  # type: ignore[import-not-found]

WAIT_S = 120.0
COUNT = 1 << 20


class Owner(Actor):
    """An actor with a tensor on the GPU."""

    def __init__(self) -> None:
        self.values = torch.arange(COUNT, dtype=torch.float32, device="cuda")
        self.host: torch.Tensor | None = None
        self.buffer: RDMABuffer | None = None

    @endpoint
    async def total(self) -> tuple[str, float]:
        """Return the device's name and the sum that it computed."""
        return torch.cuda.get_device_name(0), float(self.values.double().sum().item())

    @endpoint
    async def offer(self) -> RDMABuffer:
        """Return a handle of a copy in host memory, which TCP can carry."""
        self.host = self.values.cpu()
        self.buffer = RDMABuffer(self.host.view(torch.uint8).flatten())
        return self.buffer


class Reader(Actor):
    """An actor that reads the tensor of another process onto its own GPU."""

    @endpoint
    async def read(self, buffer: RDMABuffer) -> float:
        """Return the sum of what was read, computed on the GPU."""
        mine = torch.zeros(COUNT, dtype=torch.float32)
        await buffer.read_into(mine.view(torch.uint8).flatten())
        return float(mine.cuda().double().sum().item())


def main() -> None:
    """Print one line for each result."""
    owners = meshes.trainers.spawn_procs(per_host={"gpus": 1}).spawn("owner", Owner)
    readers = meshes.trainers.spawn_procs(per_host={"gpus": 1}).spawn("reader", Reader)
    name, total = owners.total.call_one().get(timeout=WAIT_S)
    print("owner", name, total == COUNT * (COUNT - 1) / 2, flush=True)
    buffer = owners.offer.call_one().get(timeout=WAIT_S)
    read = readers.read.call_one(buffer).get(timeout=WAIT_S)
    print("reader", read == total, flush=True)


if __name__ == "__main__":
    main()
