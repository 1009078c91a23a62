"""Run by the head node of a SkyPilotJob: ends when no program is connected to the workers.

`python - PORT FIRST_S GONE_S`: the workers' port; how long to wait for the first connection, and
how long there may be none after that, in seconds. Then SkyPilot sees that the cluster is idle.
"""

import os
import sys
import time
from pathlib import Path

LOOK_S = 2.0
ESTABLISHED = "01"
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def main(port: int, first_s: float, gone_s: float) -> None:
    """Wait for a first connection, then for the end of the last.

    The wait ends only after a check that finds no connection, even if a busy node checks late.
    """
    patience_s, seen_at = first_s, time.monotonic()
    while True:
        if is_connected(port):
            patience_s, seen_at = gone_s, time.monotonic()
        elif time.monotonic() - seen_at > patience_s:
            break
        time.sleep(LOOK_S)
    sys.stdout.write(f"No program has been connected for {patience_s:g} s: the workers end.\n")


def is_connected(port: int) -> bool:
    """Whether a machine that is no node of the cluster has a connection to our worker."""
    # Loopback "nodes" share the table: each worker listens on its own address.
    here, *others = os.environ["SKYPILOT_NODE_IPS"].split()
    return any(
        int(local.rpartition(":")[2], 16) == port
        and _dotted(local) == here
        and state == ESTABLISHED
        and _dotted(remote) not in others
        for table in TABLES
        if table.exists()
        for _, local, remote, state, *_ in map(str.split, table.read_text().splitlines()[1:])
    )


def _dotted(remote: str) -> str:
    """Return an address of /proc/net/tcp, even one that IPv6 wraps, in dotted notation."""
    digits = remote.rpartition(":")[0][-8:]
    return ".".join(str(int(digits[at : at + 2], 16)) for at in (6, 4, 2, 0))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
