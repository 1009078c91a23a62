"""A warm cluster: the next job starts without provisioning, and jobs run one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.portal import AFTER_THE_OTHER_RANK, PortalOnRig
from tests.cluster.rig.machine import Rig
from tests.waiting import eventually

SECRET = "the-value-that-nobody-may-see"
LINES = 300
# Every rank prints its rank and what arrived, and ends with a code of its own.
EVERY_RANK = """
echo "rank $SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES: $(cat data.txt) ${#TOKEN} $TOKEN"
echo "mounted $(cat ~/mounted/data.txt)"
echo "addresses $(echo $SKYPILOT_NODE_IPS | wc -w) setup $(cat ~/setup-$SKYPILOT_NODE_RANK)"
"""
KEPT: dict[str, Any] = {"reuse": True, "idle": {"minutes": 1}}
RESOURCES = {"infra": "slurm/rig/main", "accelerators": "H100:2"}


@pytest.fixture(scope="module")
def first(portal: PortalOnRig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Run a job that leaves its cluster behind."""
    folder: Path = tmp_path_factory.mktemp("folder")
    (folder / "data.txt").write_text("arrived")
    portal.set_secret("TOKEN", SECRET)
    number = portal.submit(**job_on_two_nodes(portal.upload(folder)))
    portal.wait_for(number)
    yield number


def job_on_two_nodes(folder: str) -> dict[str, Any]:
    """Build the same job each time, so that the second finds everything as the first left it."""
    return {
        "name": "kept",
        "num_nodes": 2,
        "workdir": folder,
        "file_mounts": {"~/mounted": folder},
        "resources": RESOURCES,
        "secrets": ["TOKEN"],
        "setup": "echo of $SKYPILOT_SETUP_NODE_RANK > ~/setup-$SKYPILOT_SETUP_NODE_RANK",
        "run": EVERY_RANK,
        "portal": KEPT,
    }


@pytest.mark.feature("S3.1", "S2.1", "S2.4")
def test_every_rank_has_its_number_the_upload_and_the_secret(
    portal: PortalOnRig, first: int
) -> None:
    assert portal.job(first)["status"] == "SUCCEEDED", portal.log(first)
    log = portal.log(first)
    for rank in (0, 1):
        assert f"rank {rank} of 2: arrived {len(SECRET)} ***" in log
        assert f"addresses 2 setup of {rank}" in log
    assert log.count("mounted arrived") == 2
    assert SECRET not in log
    assert [row["exit_code"] for row in portal.attempts(first)[0]["workers"]] == [0, 0]


@pytest.mark.feature("S2.8", "S3.2")
def test_the_next_job_starts_without_provisioning_and_skips_its_setup(
    portal: PortalOnRig, first: int
) -> None:
    spec = portal.job(first)["spec"]
    second = portal.submit(**job_on_two_nodes(spec["workdir"]))
    portal.wait_for(second)
    here, there = portal.attempts(first)[0], portal.attempts(second)[0]
    assert there["cluster_name"] == here["cluster_name"]
    stages = {stage["name"]: stage for stage in there["stages"]}
    assert "unchanged" in stages["setup"]["detail"]
    assert "rank 1 of 2: arrived" in portal.log(second)


@pytest.mark.feature("S0.6")
def test_two_jobs_that_name_the_cluster_run_one_after_the_other_on_ports_of_their_own(
    portal: PortalOnRig, first: int
) -> None:
    cluster = portal.attempts(first)[0]["cluster_name"]
    numbers = [
        portal.submit(
            name=name,
            run=f"echo {name} was here",
            resources={"infra": "slurm/rig/main"},
            portal={"cluster": cluster, "port": port, "meshes": {"all": 2}},
        )
        for name, port in (("one", 23000), ("two", 24000))
    ]
    for number, name in zip(numbers, ("one", "two"), strict=True):
        assert portal.wait_for(number)["status"] == "SUCCEEDED", portal.log(number)
        assert f"{name} was here" in portal.log(number)
        assert portal.attempts(number)[0]["cluster_name"] == cluster
    before, after = (portal.attempts(number)[0] for number in numbers)
    assert before["ended_at"] <= after["created_at"]


def test_lines_of_nodes_that_do_not_reach_the_portal_are_fetched_each_once(
    portal: PortalOnRig, first: int
) -> None:
    cluster = portal.attempts(first)[0]["cluster_name"]
    with portal.way.closed():
        number = portal.submit(
            name="unreached",
            num_nodes=2,
            run=f"""
for i in $(seq {LINES}); do echo line $i of $SKYPILOT_NODE_RANK; done
{AFTER_THE_OTHER_RANK}
exit 3
""",
            resources={"infra": "slurm/rig/main"},
            portal={"cluster": cluster},
        )
        ended = portal.wait_for(number)
    assert (ended["status"], ended["exit_code"]) == ("FAILED", 3)
    lines = portal.log(number).splitlines()
    for rank in (0, 1):
        printed = [line for line in lines if line.endswith(f" of {rank}")]
        assert len(printed) == LINES
        assert printed[-1].endswith(f"line {LINES} of {rank}")


@pytest.mark.feature("P6.1")
def test_an_unused_warm_cluster_is_terminated_on_time(
    rig: Rig, portal: PortalOnRig, first: int
) -> None:
    cluster = portal.attempts(first)[0]["cluster_name"]
    assert eventually(lambda: cluster not in portal.clusters(), timeout_s=180), portal.clusters()
    assert eventually(lambda: set(rig.states().values()) == {"idle"}, timeout_s=60)
