"""SkyPilotJob on a cluster that SkyPilot has provisioned: one cold launch, two ways to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.rig import places
from tests.cluster.rig.machine import Rig
from tests.cluster.rig.skypilot import SkyPilotServer
from tests.own_network import OwnNetwork
from tests.skypilot_clients import CHECKOUT, Client
from tests.waiting import eventually

QUICKSTART = CHECKOUT / "examples" / "skypilot_quickstart.py"
NAME = "quickstart"
ARGUMENTS = ("--infra", "slurm/rig", "--accelerators", "H100:2", "--cluster-name", NAME)
CLIENT_S = 240
JOB = f"""
job = SkyPilotJob({{"trainers": 2}}, {{"infra": "slurm/rig", "accelerators": "H100:2"}},
                  cluster_name={NAME!r}, idle_minutes_to_autostop=30, reach="tunnel")
"""
# How long the tunnel is cut. Beyond 60 s Monarch's own time-outs would end the program's processes.
CUTS_S = (2, 20, 75) if os.environ.get("FULL") == "1" else (2, 20)
IS_CUT = f"""
import asyncio, pathlib
class Worker(Actor):
    def __init__(self):
        self.calls = []

    @endpoint
    async def work(self, number, seconds):
        self.calls.append(number)
        await asyncio.sleep(seconds)
        return self.calls

def work(number, seconds=0.0):
    return actors.work.call(number, seconds)

def seen(future):
    return [calls for _, calls in future.get().items()]
{JOB}
actors = job.state().trainers.spawn_procs(per_host={{"procs": 1}}).spawn("worker", Worker)
seen(work(0))
for number in range({len(CUTS_S)}):
    say("idle", number)
    while not pathlib.Path(f"go-on-{{number}}").exists():
        time.sleep(0.1)
    seen(work(2 * number + 1))
    pending = work(2 * number + 2, 1.0)
    say("calls", number)
    seen(pending)
say(seen(work({2 * len(CUTS_S) + 1})) == [list(range({2 * len(CUTS_S) + 2}))] * 2)
"""
KILL = f"""{JOB}
with job:
    say(ranks(job.state().trainers))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the directory in which the user's program starts and a kept job is remembered."""
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def kept(skypilot_server: SkyPilotServer, project: Path) -> Iterator[str]:
    """Run the quick start, which keeps its cluster, and yield what it printed."""
    yield quickstart(skypilot_server, project, "--reach", "direct")
    skypilot_server.sky("down", "-y", NAME)


def quickstart(server: SkyPilotServer, project: Path, *more: str) -> str:
    """Run the example as a user of `server` and return what it printed."""
    done = subprocess.run(
        [sys.executable, str(QUICKSTART), *ARGUMENTS, "--keep-minutes", "30", *more],
        cwd=project,
        env=environment_of(server),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=CLIENT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def environment_of(server: SkyPilotServer) -> dict[str, str]:
    return {**server.environment, "PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1"}


@pytest.mark.feature("S0.1")
@pytest.mark.timeout(400)
def test_the_quick_start_drives_actors_on_a_cluster_of_skypilots(rig: Rig, kept: str) -> None:
    assert "counted [3, 3]" in kept and "step 2: loss 0.333" in kept
    nodes = rig.nodes_of(NAME)
    assert len(nodes) == 2
    for rank, node in enumerate(nodes):
        assert f"on {node}, node {rank}" in kept


@pytest.mark.timeout(400)
def test_the_same_cluster_is_reached_through_the_login_node(
    rig: Rig, kept: str, skypilot_server: SkyPilotServer, project: Path
) -> None:
    output = quickstart(skypilot_server, project, "--reach", "tunnel")
    assert f"cluster {NAME}: reached by ssh" in output
    for rank, node in enumerate(rig.nodes_of(NAME)):
        assert f"on {node}, node {rank}" in output


@pytest.mark.timeout(600)
def test_calls_are_answered_once_and_in_order_after_the_tunnel_was_cut_idle_and_in_a_call(
    kept: str, skypilot_server: SkyPilotServer, project: Path
) -> None:
    api = int(skypilot_server.url.rpartition(":")[2])
    laptop = OwnNetwork(api, places.SSH_PORT)
    client = Client(project, IS_CUT, environment_of(skypilot_server), laptop.prefix)
    try:
        for number, cut_s in enumerate(CUTS_S):
            for words in (f"idle {number}", f"calls {number}"):
                client.wait_for(words)
                laptop.relays[1].cut()
                # The length is the subject: nothing is to be awaited.
                time.sleep(cut_s)
                laptop.relays[1].restore()
                (project / f"go-on-{number}").touch()
        assert client.wait() == 0, client.text
    finally:
        client.close()
        laptop.close()
    assert client.said[-1] == "True"
    assert "Traceback" not in client.text


@pytest.mark.timeout(400)
def test_leaving_the_block_gives_the_machines_back(
    rig: Rig, kept: str, skypilot_server: SkyPilotServer, project: Path
) -> None:
    client = Client(project, KILL, environment_of(skypilot_server))
    assert client.wait() == 0, client.text
    assert client.said == ["['0', '1']"]
    assert eventually(lambda: not rig.nodes_of(NAME), timeout_s=30)
    assert NAME not in skypilot_server.sky("status").stdout
