# ruff: noqa: T201 - the log is what a test reads
"""Multiply matrices on the first visible GPU until a file named `done` exists."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

SIZE = 8192


def main() -> None:
    """Print the device, then keep it busy for at most five minutes."""
    print("device", torch.cuda.get_device_name(0), "of", torch.cuda.device_count(), flush=True)
    left = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    until_s = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < until_s and not Path("done").exists():
        for _ in range(20):
            left @ left
        torch.cuda.synchronize()
    print("peak", torch.cuda.max_memory_allocated(), flush=True)


if __name__ == "__main__":
    main()
