"""Tasks and actors of a context on one machine, beside Ray's.

`make bench NAME=context.calls`. What the figures mean is in bench/README.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import ray_peer
from bench.context import probe
from bench.measure import Peer, figures, median, report, say

ROUNDS = 3
LIMIT_S = 300
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


def measured(python: Path | str, system: str) -> dict[str, float]:
    """Run the probe in an environment; return its figures."""
    root = str(Path(__file__).resolve().parents[2])
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder}
        if system == "ours":
            environment["PYTHONPATH"] = root
        done = subprocess.run(
            [python, probe.__file__, system],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
    line = done.stdout.strip().splitlines()[-1]
    found: dict[str, float] = json.loads(line.removeprefix(probe.RESULT))
    say(f"{system}: {found}")
    return found


def main() -> None:
    """Measure both, in turns."""
    ray = ray_peer.environment() / "bin" / "python"
    with figures():
        rounds = [(measured(sys.executable, "ours"), measured(ray, "ray")) for _ in range(ROUNDS)]
        for figure, unit in UNITS.items():
            ours = [mine[figure] for mine, _ in rounds]
            peer = median(theirs[figure] for _, theirs in rounds)
            spread = (min(ours), max(ours))
            report(figure, median(ours), unit, peer=Peer("ray", peer), spread=spread)


if __name__ == "__main__":
    main()
