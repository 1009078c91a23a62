"""`put` and `get` of large arrays in a task context, beside Ray and a bare copy of memory.

`make bench NAME=context_objects`. What the figures mean is in bench/README.md.
"""

from __future__ import annotations

import argparse
import sys

from bench import object_probe, ray_peer
from bench.measure import Peer, figures, report


def main() -> None:
    """Measure ours, then Ray unless it is omitted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-ray", action="store_true")
    arguments = parser.parse_args()
    python = None if arguments.without_ray else ray_peer.environment() / "bin" / "python"
    with figures():
        mine = ray_peer.probed(object_probe.__file__, sys.executable, "ours")
        rays = ray_peer.probed(object_probe.__file__, python, "ray") if python else {}
        for size in object_probe.SIZES:
            copied = Peer("memcpy into warm memory", mine[f"memcpy_{size}_gbps"])
            report(f"put_{size}_gbps", mine[f"put_{size}_gbps"], "GB/s", peer=copied)
            for figure in (f"put_{size}_gbps", f"get_{size}_gbps") if rays else ():
                report(f"{figure}_beside_ray", mine[figure], "GB/s", peer=Peer("ray", rays[figure]))


if __name__ == "__main__":
    main()
