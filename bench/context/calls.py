"""Tasks and actors of a context on one machine, beside Ray's.

`make bench NAME=context.calls`. What the figures mean is in bench/README.md.
"""

from __future__ import annotations

import sys

from bench import ray_peer
from bench.context import probe
from bench.measure import Peer, figures, median, report

ROUNDS = 3
UNITS = {
    "start_s": "s",
    "task_roundtrip_ms": "ms",
    "tasks_per_s": "1/s",
    "actor_create_ms": "ms",
    "actor_roundtrip_ms": "ms",
    "actor_calls_per_s": "1/s",
    "wait_1000_ms": "ms",
    "memory_per_task_bytes": "bytes",
}


def main() -> None:
    """Measure both, in turns."""
    ray = ray_peer.environment() / "bin" / "python"
    with figures():
        rounds = [
            (
                ray_peer.probed(probe.__file__, sys.executable, "ours"),
                ray_peer.probed(probe.__file__, ray, "ray"),
            )
            for _ in range(ROUNDS)
        ]
        for figure, unit in UNITS.items():
            ours = [mine[figure] for mine, _ in rounds]
            peer = median(theirs[figure] for _, theirs in rounds)
            spread = (min(ours), max(ours))
            report(figure, median(ours), unit, peer=Peer("ray", peer), spread=spread)


if __name__ == "__main__":
    main()
