"""Meshes of a whole portal on Slurm: driven from a laptop, or requested at run time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_remote_job import PROGRAM
from tests.cluster.portal import PortalOnRig
from tests.cluster.rig.machine import Rig
from tests.own_network import OwnNetwork
from tests.programs import runner_in
from tests.waiting import eventually

RESOURCES = {"infra": "slurm/rig/main", "accelerators": "H100:1"}
# The same program, with GPUs of the rig.
ON_SLURM = PROGRAM.replace(
    "replicas=2,", 'replicas=2, gpu=1, gpu_type="H100", infra="slurm/rig/main",'
)
DRIVER = """
cat > driver.py <<'END'
import socket
from monarch.actor import Actor, endpoint
from mportal_runtime import meshes, request_mesh

class Probe(Actor):
    @endpoint
    def host(self):
        return socket.gethostname()

def hosts(mesh):
    actors = mesh.spawn_procs(per_host={"gpus": 1}).spawn("probe", Probe)
    return sorted(host for _, host in actors.host.call().get(timeout=60).items())

generators = request_mesh("generators")
print("job", generators.job, "on", *hosts(meshes.trainers), *hosts(generators), flush=True)
generators.release()
END
python3 driver.py
"""
SPEC: dict[str, Any] = {
    "name": "requests",
    "resources": RESOURCES,
    "run": DRIVER,
    "portal": {"meshes": {"trainers": 1}},
}


@pytest.mark.feature("S1.7")
@pytest.mark.timeout(400)
def test_a_program_that_reaches_the_portal_alone_gets_machines_of_slurm_and_gives_them_back(
    portal: PortalOnRig, rig: Rig, tmp_path: Path
) -> None:
    laptop = OwnNetwork(int(portal.url.rpartition(":")[2]))
    run_program = runner_in(tmp_path, laptop.prefix, end_s=300)
    try:
        account = {"MPORTAL_URL": portal.url, "MPORTAL_TOKEN": portal.token}
        steps, ranks, name = run_program(ON_SLURM, **account)
    finally:
        laptop.close()
    assert steps == str(["Training step on cpu with batch_size=32"] * 2)
    assert ranks == "[0, 1]"
    with portal.client() as client:
        [job] = client.get("/api/v1/projects/default/jobs", params={"name": name}).json()["results"]
    assert portal.wait_for(job["id"])["status"] == "CANCELLED"
    [attempt] = portal.attempts(job["id"])
    assert eventually(lambda: not rig.nodes_of(attempt["cluster_name"]), timeout_s=90)


@pytest.mark.feature("S1.5")
@pytest.mark.timeout(400)
def test_a_driver_gets_a_second_mesh_perhaps_on_its_own_node_and_releases_it(
    portal: PortalOnRig, rig: Rig
) -> None:
    number = portal.submit(**SPEC)
    assert portal.wait_for(number, timeout_s=300)["status"] == "SUCCEEDED", portal.log(number)
    log = portal.log(number)
    [(child, *hosts)] = re.findall(r"job (\d+) on (rig-\d) (rig-\d)$", log, re.MULTILINE)
    assert set(hosts) <= set(rig.nodes)
    assert portal.wait_for(int(child))["status"] == "SUCCEEDED"
    assert portal.job(int(child))["parent"] == number
    # Slurm runs both on one node if it likes: they have ports of their own.
    ports = [portal.job(each)["spec"]["portal"]["port"] for each in (number, int(child))]
    assert ports == [22222, 22225]
    clusters = [portal.attempts(each)[0]["cluster_name"] for each in (number, int(child))]
    assert eventually(lambda: not any(map(rig.nodes_of, clusters)), timeout_s=90)
