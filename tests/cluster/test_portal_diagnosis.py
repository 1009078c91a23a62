"""Faults of nodes and networks, planted on the rig: each is named with the line that shows it.

Those that need a cluster of their own come with FULL=1 in the environment.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.portal import PortalOnRig
from tests.cluster.rig.machine import Rig
from tests.planted_faults import CRASH, NO_DRIVER, SOON, STOPPED_WORKER
from tests.waiting import eventually

INFRA = {"infra": "slurm/rig/main"}
HERE = sys.version_info[:2]
# Other minor versions beside this one; the machine's disk is the nodes' as well.
BESIDE = Path(os.path.realpath(sys.executable)).parents[2].glob("*/bin/python3.1?")
OTHERS = [path for path in sorted(BESIDE) if path.name != "python{}.{}".format(*HERE)]
CONNECT = "python3 -c 'import socket; socket.create_connection((\"%s\", 22222), 30)'"
MESH = {"meshes": {"all": 1}}
of_full = pytest.mark.skipif(os.environ.get("FULL") != "1", reason="a launch each: FULL=1")


# The first of them waits for the portal's start as well, and the last one for its end.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def cluster(rig: Rig, portal: PortalOnRig) -> Iterator[str]:
    """Launch a cluster of one node for faults that do its machine no harm; others end it."""
    number = portal.submit(
        name="first",
        resources=INFRA,
        run="true",
        portal={"reuse": True, "idle": {"minutes": 30}},
    )
    portal.wait_for(number, "SUCCEEDED")
    name = portal.attempts(number)[0]["cluster_name"]
    yield name
    portal.take_down(name)
    assert eventually(lambda: set(rig.states().values()) == {"idle"}, timeout_s=300)


def diagnosis_of(portal: PortalOnRig, run: str, **block: Any) -> dict[str, Any]:
    """Return the portal's diagnosis of a job that failed; `block` is the job's `portal`."""
    number = portal.submit(
        name="faulty",
        resources=INFRA,
        envs=SOON,
        run=run,
        portal=block,
    )
    portal.wait_for(number, "FAILED")
    found: dict[str, Any] | None = portal.attempts(number)[0]["diagnosis"]
    assert found is not None, portal.log(number)
    assert found["fix"]
    return found


@of_full
@pytest.mark.feature("S0.7")
def test_a_worker_that_does_not_answer_is_named(portal: PortalOnRig) -> None:
    found = diagnosis_of(portal, STOPPED_WORKER, **MESH)
    assert found["code"] == "spawn_timeout"
    assert "config push failed" in found["evidence"]


@of_full
@pytest.mark.feature("S0.7")
@pytest.mark.skipif(not OTHERS, reason="this machine has one version of Python")
def test_a_driver_of_another_python_is_named(portal: PortalOnRig) -> None:
    run = f"{OTHERS[-1]} -c 'from mportal_runtime import meshes; meshes.all'"
    found = diagnosis_of(portal, run, **MESH)
    assert found["code"] == "python_mismatch"
    assert "but the workers run {}.{}".format(*HERE) in found["evidence"]


@pytest.mark.feature("S0.7")
def test_a_node_that_is_off_is_named(rig: Rig, portal: PortalOnRig, cluster: str) -> None:
    off = next(name for name in rig.nodes if name not in rig.nodes_of(cluster))
    rig.kill_node(off)
    try:
        found = diagnosis_of(portal, CONNECT % rig.addresses[off], cluster=cluster)
    finally:
        rig.revive_node(off)
    assert found["code"] == "no_route"


@pytest.mark.feature("S0.7")
def test_a_program_that_crashes_is_named(portal: PortalOnRig, cluster: str) -> None:
    found = diagnosis_of(portal, CRASH, cluster=cluster)
    assert found["code"] == "worker_crash"
    assert "SIGSEGV" in found["evidence"]


@pytest.mark.feature("S0.7")
@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has the driver")
def test_a_node_without_the_driver_is_named(portal: PortalOnRig, cluster: str) -> None:
    found = diagnosis_of(portal, NO_DRIVER, cluster=cluster)
    assert found["code"] == "gpu_driver_missing"
    assert "libcuda.so.1" in found["evidence"]


@pytest.mark.feature("S0.7")
def test_a_place_without_room_is_named(rig: Rig, portal: PortalOnRig) -> None:
    with rig.capacity_fault("main"):
        number = portal.submit(
            name="roomless", resources={"infra": "rig/rig/main"}, run="echo never"
        )
        first = lambda: portal.attempts(number)[:1]  # noqa: E731
        assert eventually(lambda: first() and first()[0]["diagnosis"], timeout_s=180), portal.logs()
        portal.cancel(number)
    found = first()[0]["diagnosis"]
    assert found["code"] == "no_capacity"
    assert found["evidence"]
    portal.wait_for(number, "CANCELLED")
