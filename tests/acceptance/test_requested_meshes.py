"""Drivers of a whole portal that request further meshes, on real workers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.portal_process import PortalProcess
from tests.waiting import eventually

pytestmark = pytest.mark.feature("S1.5")
JOBS = "/api/v1/projects/default/jobs"
EXAMPLE = Path(__file__).parents[2] / "examples" / "rl_meshes"
# Requests more nodes than the machine has left, and is killed with one of its meshes in use.
DRIVER = """
import os
from monarch.actor import Actor, endpoint
from mportal_runtime import MeshCapacityError, request_mesh
class Probe(Actor):
    @endpoint
    def place(self):
        return os.environ["LEVEL"], os.environ["MPORTAL_JOB_ID"]
mesh = request_mesh("generators", spec={"envs": {"LEVEL": "child"}})
level, job = mesh.spawn_procs().spawn("probe", Probe).place.call_one().get(timeout=60)
print("an actor runs in", level, int(job) == mesh.job)
try:
    request_mesh("rewards", timeout=1)
except MeshCapacityError as error:
    print("no capacity for job", error.job, error, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def small_portal() -> Iterator[PortalProcess]:
    """Yield a portal that runs two nodes at once."""
    process = PortalProcess(MPORTAL_LOCAL_NODES="2")
    process.start()
    yield process
    process.close()


def get(portal: PortalProcess, path: str, **params: object) -> Any:
    with portal.client() as client:
        return client.get(f"{JOBS}{path}", params=params).json()


def test_the_example_trains_with_generators_that_its_driver_requests_and_releases(portal):
    said = portal.mportal("submit", "--follow", "-f", str(EXAMPLE / "job.yaml"))
    assert said.returncode == 0, said.stdout + said.stderr + portal.logs()
    assert "the generators are released" in said.stdout
    number = int(re.findall(r"job (\d+) is the mesh 'generators'", said.stdout)[0])
    child = get(portal, f"/{number}")
    parent = get(portal, f"/{child['parent']}")
    # Released by the driver before its own end.
    assert (child["status"], child["num_nodes"]) == ("SUCCEEDED", 2)
    assert child["ended_at"] <= parent["ended_at"]


def test_a_request_without_room_is_withdrawn_and_no_mesh_outlives_a_killed_driver(
    small_portal, tmp_path
):
    portal = small_portal
    script = f"cat > driver.py <<'END'\n{DRIVER}END\nexec python driver.py\n"
    spec = {"run": script, "envs": {"LEVEL": "own"}, "portal": {"meshes": {"trainers": 1}}}
    (tmp_path / "job.json").write_text(json.dumps(spec))
    said = portal.mportal("submit", "--follow", "-f", str(tmp_path / "job.json"))
    assert said.returncode == 137, said.stdout + said.stderr + portal.logs()
    assert "an actor runs in child True" in said.stdout
    refused = int(re.findall(r"no capacity for job (\d+) mesh 'rewards' was not", said.stdout)[0])
    first = refused - 1

    def has_ended() -> bool:
        return all(get(portal, f"/{job}")["is_final"] for job in (first, refused))

    assert eventually(has_ended, timeout_s=60), portal.logs()
    ends = [get(portal, f"/{job}") for job in (first, refused)]
    assert [(job["name"], job["status"], job["stop_reason"]) for job in ends] == [
        ("generators", "CANCELLED", "PARENT"),
        ("rewards", "CANCELLED", "CANCELLED_BY_USER"),
    ]
