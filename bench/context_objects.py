"""`put` and `get` of large arrays in a task context, beside Ray and a bare copy of memory.

`make bench NAME=context_objects`. What the figures mean is in bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import object_probe, ray_peer
from bench.measure import Peer, figures, report, say

LIMIT_S = 300


def measured(python: Path | str, system: str) -> dict[str, float]:
    """Run the probe in an environment; return its figures."""
    root = str(Path(__file__).resolve().parents[1])
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder}
        if system == "ours":
            environment["PYTHONPATH"] = root
        done = subprocess.run(
            [python, object_probe.__file__, system],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    say(f"{system}: {found}")
    return found


def main() -> None:
    """Measure ours, then Ray unless it is omitted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-ray", action="store_true")
    arguments = parser.parse_args()
    python = None if arguments.without_ray else ray_peer.environment() / "bin" / "python"
    with figures():
        mine = measured(sys.executable, "ours")
        rays = measured(python, "ray") if python else {}
        for size in object_probe.SIZES:
            copied = Peer("memcpy into warm memory", mine[f"memcpy_{size}_gbps"])
            report(f"put_{size}_gbps", mine[f"put_{size}_gbps"], "GB/s", peer=copied)
            for figure in (f"put_{size}_gbps", f"get_{size}_gbps") if rays else ():
                report(f"{figure}_beside_ray", mine[figure], "GB/s", peer=Peer("ray", rays[figure]))


if __name__ == "__main__":
    main()
