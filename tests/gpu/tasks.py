# ruff: noqa: T201 - the log is what a test reads
"""A driver of tasks: compute on the GPUs that tasks and actors were given."""

from __future__ import annotations

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from mportal_runtime import meshes  # type: ignore[import-not-found]

from monarch_client.context import ActorOptions, JobContext, TaskOptions
from monarch_client.context.errors import InfeasibleError

WAIT_S = 120.0
COUNT = 1 << 26
# Of the memory of the GPU: two processes cannot have it at once.
SHARE = 0.6


def total(values: np.ndarray) -> tuple[str, int, float]:
    """Return the visible GPUs, how many CUDA finds, and a sum that the GPU computed."""
    on_gpu = torch.tensor(values, device="cuda")
    return (
        os.environ["CUDA_VISIBLE_DEVICES"],
        torch.cuda.device_count(),
        float(on_gpu.double().sum().item()),
    )


def meet(folder: Path) -> bool:
    """Whether another task uses the GPU at the same time."""
    torch.ones(1, device="cuda")
    (folder / str(os.getpid())).touch()
    until_s = time.monotonic() + WAIT_S / 2
    while len(list(folder.iterdir())) < 2 and time.monotonic() < until_s:
        time.sleep(0.1)
    return len(list(folder.iterdir())) == 2


def fill() -> int:
    """Return the bytes that PyTorch keeps after a tensor of most of the GPU's memory."""
    memory = torch.cuda.get_device_properties(0).total_memory
    torch.empty(int(memory * SHARE), dtype=torch.uint8, device="cuda")
    return torch.cuda.memory_reserved() * 100 // memory


class Model:
    """An actor that needs most of the GPU's memory."""

    def __init__(self) -> None:
        self.filled = fill()

    def percent(self) -> int:
        """Return the part of the GPU's memory that it has."""
        return self.filled


def main() -> None:
    """Print one line for each result."""
    one = TaskOptions(resources={"GPU": 1})
    with JobContext(meshes.trainers) as context, TemporaryDirectory() as folder:
        values = np.arange(COUNT, dtype=np.float32)
        ref = context.put(values)
        visible, count, summed = context.get(
            context.create_task(total, (ref,), options=one), timeout=WAIT_S
        )
        print("task", visible, count, summed == float(values.sum(dtype=np.float64)), flush=True)
        half = TaskOptions(resources={"GPU": 0.5})
        both = [context.create_task(meet, (Path(folder),), options=half) for _ in range(2)]
        print("halves", all(context.get(both, timeout=WAIT_S)), flush=True)
        kept = context.get(context.create_task(fill, options=one), timeout=WAIT_S)
        model = context.create_actor(Model, options=ActorOptions(resources={"GPU": 1}))
        print("memory", kept, context.get(model.percent(), timeout=WAIT_S), flush=True)
        try:
            context.create_task(fill, options=TaskOptions(resources={"GPU": 2}))
        except InfeasibleError as error:
            print("refused", error, flush=True)


if __name__ == "__main__":
    main()
