"""`make cluster-shell`: a shell inside the rig, beside an API server of SkyPilot's."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.cluster.rig import places
from tests.cluster.rig.machine import Rig
from tests.cluster.rig.skypilot import SkyPilotServer

WELCOME = """\
A Slurm cluster of {count} nodes, gone when you leave this shell. On it:
  sky check slurm; sky launch --infra slurm/rig ... or, for money, rig/rig; sky status
  sinfo; squeue; scancel ID (a preemption)
  touch {faults}/main (no capacity in that partition, until you remove it)
  ssh -p {port} -i {key} root@{host} (the login node)
Logs: {logs}
"""


def main() -> int:
    rig = Rig()
    server = SkyPilotServer(rig.home)
    sys.stdout.write("Starting SkyPilot's server ...\n")
    server.start()
    try:
        sys.stdout.write(
            WELCOME.format(
                count=len(rig.nodes),
                faults=places.FAULTS,
                port=rig.login.port,
                key=rig.login.key,
                host=rig.login.host,
                logs=rig.logs,
            )
        )
        sys.stdout.flush()
        environment = {**server.environment, "TERM": os.environ.get("TERM", "dumb")}
        environment["PS1"] = r"rig:\w\$ "
        return subprocess.call(["bash", "--norc"], env=environment, cwd=places.CHECKOUT)
    finally:
        server.close()


if __name__ == "__main__":
    raise SystemExit(main())
