"""Objects of 10 MB that move between two hosts, beside messages and RDMABuffer of Monarch.

`make bench NAME=context.hosts`. What the figures mean is in bench/README.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.context import host_probe
from bench.measure import Peer, figures, median, report
from tests.monarch_workers import MonarchWorkers

ROUNDS = 3
SYSTEMS = ("ours", "ours_rdma", "monarch", "rdma")
# The figures that have a message as their peer, by system.
FIGURES = {
    "ours": "get_10mb_gbps",
    "ours_rdma": "get_10mb_by_rdma_gbps",
    "rdma": "rdma_buffer_10mb_gbps",
}


def main() -> None:
    """Measure them in turns, on the same two hosts."""
    with tempfile.TemporaryDirectory() as folder, figures():
        workers = MonarchWorkers(Path(folder), 2)
        try:
            rounds = [[probed(name, workers) for name in SYSTEMS] for _ in range(ROUNDS)]
        finally:
            workers.close()
        rates = dict(zip(SYSTEMS, zip(*rounds, strict=True), strict=True))
        peer = Peer("a message of Monarch", median(rates["monarch"]))
        for system, name in FIGURES.items():
            found = rates[system]
            spread = min(found), max(found)
            report(name, median(found), "GB/s", peer=peer, spread=spread)


def probed(name: str, workers: MonarchWorkers) -> float:
    """Return the rate of one system."""
    done = subprocess.run(
        [sys.executable, host_probe.__file__, name, workers.certificates, *workers.addresses],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        check=True,
        text=True,
    )
    return float(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
