"""Jobs through a whole portal: its own SkyPilot server launches, and takes down."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.portal import PortalOnRig, portal_on
from tests.cluster.rig.machine import Rig
from tests.waiting import eventually

INFRA = {"infra": "slurm/rig"}
DRIVER = """
cat > driver.py <<'END'
from monarch.actor import Actor, endpoint
from mportal_runtime import meshes

class Hello(Actor):
    @endpoint
    async def say(self, mesh):
        print("hello from", mesh, flush=True)
        return 1

for name in ("trainers", "generators"):
    procs = meshes[name].spawn_procs(per_host={"gpus": 1})
    print(name, sum(answer for _, answer in procs.spawn("hello", Hello).say.call(name).get()))
END
python3 driver.py
"""


@pytest.fixture(scope="module")
def portal(rig: Rig) -> Iterator[PortalOnRig]:
    """One portal for the tests of this file, which its nodes reach."""
    with portal_on(rig, is_reached=True) as portal:
        yield portal


def test_a_monarch_job_on_two_nodes_is_launched_run_and_taken_down(
    rig: Rig, portal: PortalOnRig
) -> None:
    job = portal.submit(
        name="hello",
        resources={**INFRA, "accelerators": "H100:2"},
        run=DRIVER,
        portal={"meshes": {"trainers": 1, "generators": 1}},
    )
    ended = portal.wait_for(job)
    assert ended["status"] == "SUCCEEDED", portal.log(job)
    assert "trainers 1" in portal.log(job)
    assert "generators 1" in portal.log(job)
    assert eventually(lambda: set(rig.states().values()) == {"idle"}, timeout_s=60)
