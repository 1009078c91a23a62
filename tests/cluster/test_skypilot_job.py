"""SkyPilotJob on a cluster that SkyPilot has provisioned: one cold launch, two ways to it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.rig.machine import Rig
from tests.cluster.rig.skypilot import SkyPilotServer
from tests.skypilot_clients import CHECKOUT, Client
from tests.waiting import eventually

QUICKSTART = CHECKOUT / "examples" / "skypilot_quickstart.py"
NAME = "quickstart"
ARGUMENTS = ("--infra", "slurm/rig", "--accelerators", "H100:2", "--cluster-name", NAME)
CLIENT_S = 240
KILL = f"""
job = SkyPilotJob({{"trainers": 2}}, {{"infra": "slurm/rig", "accelerators": "H100:2"}},
                  cluster_name={NAME!r}, idle_minutes_to_autostop=30, reach="tunnel")
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


@pytest.mark.timeout(400)
def test_leaving_the_block_gives_the_machines_back(
    rig: Rig, kept: str, skypilot_server: SkyPilotServer, project: Path
) -> None:
    client = Client(project, KILL, environment_of(skypilot_server))
    assert client.wait() == 0, client.text
    assert client.said == ["['0', '1']"]
    assert eventually(lambda: not rig.nodes_of(NAME), timeout_s=30)
    assert NAME not in skypilot_server.sky("status").stdout
