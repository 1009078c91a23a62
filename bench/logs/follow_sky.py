"""The age of a line at one follower: of the portal, and of `sky logs`, on one Slurm cluster.

`python -m bench.logs.follow_sky`, as root: it runs inside the cluster of tests/cluster/rig.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import on_rig
from bench.logs import talk
from bench.logs.program import Program, following
from bench.measure import Peer, figures, median, report, say
from bench.own_portal import CHECKOUT
from monarch_client.rest.client import PortalClient
from tests.cluster.portal import PortalOnRig, portal_on
from tests.cluster.rig import places
from tests.cluster.rig.machine import Rig

PROJECT = "default"
LINES_PER_S = 1000
ROUNDS = 3
LIMIT_S = 600.0
# Nodes share this folder, and one clock, with this machine.
GO_OURS, GO_BARE = places.RUN / "talk-ours", places.RUN / "talk-bare"
CLUSTER = "bare-talk"
SKY = str(Path(sys.executable).with_name("sky"))


def task(go: Path) -> dict[str, Any]:
    """Return a task that prints a first line, then prints lines while `go` exists."""
    source = Path(talk.__file__).read_text()
    return {
        "name": "talk",
        "resources": {"infra": f"slurm/rig/{places.PARTITIONS[0]}"},
        "run": f"python3 - {go} {LINES_PER_S} <<'END'\n{source}END\n",
    }


@contextmanager
def job_here(portal: PortalOnRig) -> Iterator[int]:
    """Run the portal's job, which waits for its file, and yield its id."""
    with PortalClient(portal.url, portal.token) as client:
        job = client.submit(PROJECT, task(GO_OURS)).id
        try:
            deadline = time.monotonic() + LIMIT_S
            while talk.READY not in portal.log(job):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no first word of the job:\n{portal.logs()}")
                time.sleep(0.5)
            yield job
        finally:
            portal.cancel(job)


@contextmanager
def job_there(user: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Run the same task by `sky launch`; yield the job's number on its cluster."""
    file = folder / "talk.yaml"
    file.write_text(json.dumps(task(GO_BARE)))
    try:
        sky(user, "launch", "-y", "-d", "-c", CLUSTER, str(file))
        yield "1"
    finally:
        sky(user, "down", "-y", CLUSTER)


def sky(user: Mapping[str, str], *arguments: str) -> None:
    """Run a command of SkyPilot's; its output goes to stderr. CalledProcessError: it failed."""
    subprocess.run(
        [SKY, *arguments], env=user, check=True, stdout=sys.stderr, timeout=LIMIT_S, cwd="/"
    )


def followed_here(portal: PortalOnRig, job: int) -> dict[str, Any]:
    """Measure one follower of the portal's live stream."""
    command = [sys.executable, "-m", "bench.logs.followers", "--url", portal.url]
    command += ["--token", portal.token, "--project", PROJECT, "--jobs", str(job)]
    command += ["--count", "1", "--go", str(GO_OURS)]
    try:
        done = subprocess.run(command, cwd=CHECKOUT, check=True, stdout=subprocess.PIPE, text=True)
    finally:
        GO_OURS.unlink(missing_ok=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(rounds: int) -> None:
    """Measure both alternately; each job is silent while the other one prints."""
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    with both() as (portal, job, program):
        for _ in range(rounds):
            ours.append(followed_here(portal, job))
            GO_BARE.touch()
            theirs.append(program.seen())
            GO_BARE.unlink()
            say(f"ours {ours[-1]}\nsky  {theirs[-1]}")
    for name in ("p50", "p99"):
        values = [each[name] for each in ours]
        report(
            f"follow_{name}_s_1_sky",
            median(values),
            "s",
            peer=Peer(
                f"skypilot {version('skypilot')} logs", median(each[name] for each in theirs)
            ),
            spread=(min(values), max(values)),
        )


@contextmanager
def both() -> Iterator[tuple[PortalOnRig, int, Program]]:
    """Start the portal and its job, and `sky logs` of the peer's, both up to the first line."""
    with (
        tempfile.TemporaryDirectory(prefix="mportal-bench-", dir="/tmp") as folder,
        portal_on(Rig()) as portal,
        job_here(portal) as job,
    ):
        user = user_of(portal, Path(folder))
        with (
            job_there(user, Path(folder)) as number,
            following([SKY, "logs", CLUSTER, number], user) as program,
        ):
            program.wait_until_open()
            yield portal, job, program


def user_of(portal: PortalOnRig, home: Path) -> dict[str, str]:
    """Return the environment of a user of the portal's SkyPilot server."""
    server = json.loads(portal.home.skypilot.server_file.read_text())
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "SKYPILOT_API_SERVER_ENDPOINT": server["endpoint"],
        "SKYPILOT_SERVICE_ACCOUNT_TOKEN": server["token"] or "",
    }


def main() -> int:
    """Parse the command line, enter the rig if needed, measure, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    if not on_rig.is_here():
        return on_rig.enter("bench.logs.follow_sky")
    with figures():
        measure(options.rounds)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
