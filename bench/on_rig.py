"""Measurements that need a real SkyPilot run inside the Slurm cluster of tests/cluster/rig."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.own_portal import CHECKOUT
from tests.cluster.rig import places


def is_here() -> bool:
    """Whether this process runs in one. If so, it is made ready to start what nodes run."""
    if not places.MACHINE_FILE.exists():
        return False
    os.environ.pop("PYTHONPATH", None)
    return True


def enter(module: str) -> int:
    """Run the same command inside a rig of its own and return its exit code."""
    subprocess.run(["deploy/install-rig", sys.prefix], cwd=CHECKOUT, check=True, stdout=sys.stderr)
    here = [sys.executable, "-m", module, *sys.argv[1:]]
    rig = [sys.executable, "-m", "tests.cluster.rig", "--", *here]
    return subprocess.run(rig, cwd=CHECKOUT, check=False).returncode
