"""The processor time of a portal that has nothing to do.

`make bench NAME=idle_cpu`. What the figure means is in bench/README.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from bench import bare_servers, own_portal
from bench.cpu_time import cpu_seconds
from bench.measure import Peer, figures, report, say
from monarch_portal.embedded.memory import with_descendants
from monarch_portal.embedded.status import portal_status

SETTLE_S = 30.0
DURATION_S = 60.0


def cpu_by_part(portal: own_portal.OwnPortal) -> dict[str, float]:
    """Return the processor seconds of each part; PostgreSQL's include its children's."""
    return {
        part.name: sum(map(cpu_seconds, _pids(part.name, part.pid)))
        for part in portal_status(portal.home).processes
    }


def _pids(name: str, pid: int) -> set[int]:
    return with_descendants([pid]) if name == "postgres" else {pid}


def percent_of_core(read: Callable[[], dict[str, float]], duration_s: float) -> dict[str, float]:
    """Return the percentage of one core that each part uses in the next `duration_s` seconds."""
    before, began = read(), time.monotonic()
    time.sleep(duration_s)
    after, took = read(), time.monotonic() - began
    return {part: 100 * (after[part] - before.get(part, 0.0)) / took for part in after}


def main() -> None:
    """Parse the command line, measure, and report the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settle", type=float, default=SETTLE_S)
    parser.add_argument("--seconds", type=float, default=DURATION_S)
    options = parser.parse_args()
    with figures():
        with own_portal.running() as portal:
            time.sleep(options.settle)
            parts = percent_of_core(lambda: cpu_by_part(portal), options.seconds)
        say(", ".join(f"{part} {percent:.2f} %" for part, percent in parts.items()))
        with bare_servers.running(durable=False) as servers:
            time.sleep(options.settle)
            bare = percent_of_core(lambda: _bare(servers), options.seconds)
        peer = Peer("empty PostgreSQL and Redis", sum(bare.values()))
        report("idle_cpu_percent", sum(parts.values()), "%", peer=peer)


def _bare(servers: bare_servers.BareServers) -> dict[str, float]:
    return {"servers": sum(map(cpu_seconds, with_descendants(servers.pids)))}


if __name__ == "__main__":
    main()
