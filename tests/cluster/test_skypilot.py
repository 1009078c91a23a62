"""SkyPilot on the rig, as the portal will find it: two cold launches, shared by all tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.rig.machine import Rig
from tests.cluster.rig.skypilot import SkyPilotServer
from tests.waiting import eventually

# A pair of nodes for money; a fifth more in `spare`, three tenths for spot.
SPOT_USD_PER_HOUR = 2 * (8 * 0.05 + 32 * 0.005) * 0.3 * 1.2
RUN = "echo rank=$SKYPILOT_NODE_RANK ips=$(echo $SKYPILOT_NODE_IPS | tr ' ' ,) on $(hostname)"


def task(folder: Path, **fields: Any) -> str:
    """Write a file with a task for two nodes of two GPUs."""
    resources = {"accelerators": "H100:2", **fields.pop("resources")}
    file = folder / f"task-{len(list(folder.iterdir()))}.yaml"
    file.write_text(yaml.safe_dump({"num_nodes": 2, "resources": resources, **fields}))
    return str(file)


def listed(server: SkyPilotServer, verb: str, *arguments: str) -> list[dict[str, Any]]:
    """Return the JSON rows that a listing command of `sky` prints."""
    done = server.sky(verb, *arguments, "--output", "json")
    assert done.returncode == 0, done.stdout
    # Remarks may stand before it, each on a line of its own.
    begin = re.search(r"^\[", done.stdout, re.MULTILINE)
    rows: list[dict[str, Any]] = json.loads(done.stdout[begin.start() :])
    return rows


def statuses(server: SkyPilotServer) -> dict[str, str]:
    """Return each cluster's status, refreshed from Slurm."""
    return {row["name"]: row["status"] for row in listed(server, "status", "--refresh")}


@pytest.fixture(scope="module")
def spot(
    rig: Rig, skypilot_server: SkyPilotServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Launch the cluster `spot`, which found no machines in `main`, and yield the output."""
    resources = {"infra": "rig/rig", "use_spot": True}
    file = task(tmp_path_factory.mktemp("spot"), resources=resources, run=RUN)
    with rig.capacity_fault("main"):
        done = skypilot_server.sky("launch", "-y", "-d", "-c", "spot", file)
    assert done.returncode == 0, done.stdout
    yield done.stdout
    skypilot_server.sky("down", "-y", "spot")


@pytest.fixture(scope="module")
def plain(
    skypilot_server: SkyPilotServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Launch a cluster on SkyPilot's own Slurm cloud and yield its name."""
    file = task(tmp_path_factory.mktemp("plain"), resources={"infra": "slurm/rig"}, run="true")
    done = skypilot_server.sky("launch", "-y", "-d", "-c", "plain", file)
    assert done.returncode == 0, done.stdout
    yield "plain"
    skypilot_server.sky("down", "-y", "plain")


def test_sky_check_enables_slurm_and_the_priced_cloud(skypilot_server: SkyPilotServer) -> None:
    output = skypilot_server.sky("check", "slurm", "rig").stdout
    assert "Slurm: enabled" in output and "Rig: enabled" in output


def test_a_partition_without_capacity_is_refused_and_the_next_candidate_taken(
    rig: Rig, spot: str
) -> None:
    assert "Launching on Rig rig (main)" in spot and "Launching on Rig rig (spare)" in spot
    assert len(rig.nodes_of("spot")) == 2


def test_both_ranks_run_and_know_each_others_addresses(
    rig: Rig, spot: str, skypilot_server: SkyPilotServer
) -> None:
    output = skypilot_server.sky("logs", "spot", "1").stdout
    nodes = rig.nodes_of("spot")
    addresses = ",".join(rig.addresses[node] for node in nodes)
    for rank, node in enumerate(nodes):
        assert f"rank={rank} ips={addresses} on {node}" in output


def test_spot_machines_have_a_price_and_what_they_cost_is_charged(
    spot: str, skypilot_server: SkyPilotServer
) -> None:
    assert "[Spot]" in spot
    [bill] = [row for row in listed(skypilot_server, "cost-report") if row["name"] == "spot"]
    hours = bill["duration"] / 3600
    assert bill["total_cost"] == pytest.approx(SPOT_USD_PER_HOUR * hours, rel=0.01)


def test_what_one_rank_exits_with_comes_back(
    plain: str, skypilot_server: SkyPilotServer, tmp_path: Path
) -> None:
    file = task(tmp_path, resources={"infra": "slurm/rig"}, run="exit $((SKYPILOT_NODE_RANK * 7))")
    assert skypilot_server.sky("exec", "-d", plain, file).returncode == 0
    logs = skypilot_server.sky("logs", plain, "2")
    assert logs.returncode == 100 and "failed with return code list" in logs.stdout


def test_a_preempted_cluster_is_gone_for_skypilot(
    rig: Rig, spot: str, skypilot_server: SkyPilotServer
) -> None:
    rig.scancel("spot")
    assert eventually(lambda: "spot" not in statuses(skypilot_server), timeout_s=60)


def test_a_killed_node_takes_its_cluster_along(
    rig: Rig, plain: str, skypilot_server: SkyPilotServer
) -> None:
    victim = rig.nodes_of(plain)[1]
    rig.kill_node(victim)
    try:
        assert eventually(lambda: not rig.nodes_of(plain), timeout_s=90)
        assert plain not in statuses(skypilot_server)
    finally:
        rig.revive_node(victim)


def test_no_capacity_anywhere_is_an_error_that_names_every_candidate(
    rig: Rig, skypilot_server: SkyPilotServer, tmp_path: Path
) -> None:
    file = task(tmp_path, resources={"infra": "rig/rig"}, run="true")
    with rig.capacity_fault("main"), rig.capacity_fault("spare"):
        done = skypilot_server.sky("launch", "-y", "-d", "-c", "never", file)
    assert done.returncode == 1 and "ResourcesUnavailableError" in done.stdout
    assert "never" not in statuses(skypilot_server)
