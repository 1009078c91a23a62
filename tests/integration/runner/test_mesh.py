"""Real drivers and workers of Monarch: what rank 0 tells of their hosts, procs and actors."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest

from tests.fake_ca import make_authority
from tests.runner_harness import RunnerRig

DRIVER = """
import json, os, pathlib, time
from mportal_runtime import meshes
from monarch.actor import Actor, endpoint
class Probe(Actor):
    @endpoint
    def pid(self):
        print("I am", os.getpid(), flush=True)
        return os.getpid()
    @endpoint
    def fail(self):
        raise SystemExit(3)
def wait(name):
    while not pathlib.Path(name).exists():
        time.sleep(0.05)
"""
# It waits without a word to Monarch, and goes on whatever Monarch reports.
IDLE = """
import monarch.actor
monarch.actor.unhandled_fault_hook = lambda failure: None
probes = {name: meshes[name].spawn_procs(per_host={"procs": 2}).spawn("probe", Probe)
          for name in meshes}
pids = {name: sorted(each.pid.call().get(timeout=120).values()) for name, each in probes.items()}
pathlib.Path("pids.json.new").write_text(json.dumps(pids))
os.replace("pids.json.new", "pids.json")
wait("done")
"""


def states(tree: dict[str, Any]) -> dict[int, list[str]]:
    """The states of a job's procs by rank."""
    return {
        host["rank"]: sorted(proc["state"] for proc in host["procs"])
        for host in tree["hosts"]
        if host["rank"] is not None
    }


def latest(rig: RunnerRig) -> dict[str, Any]:
    return rig.ingest.trees[-1] if rig.ingest.trees else {"hosts": []}


def pids_of(rig: RunnerRig) -> dict[str, list[int]]:
    found: dict[str, list[int]] = json.loads((rig.root() / "workdir" / "pids.json").read_text())
    return found


@pytest.mark.feature("P4.2")
def test_a_killed_proc_is_told_while_the_driver_waits(make_rig) -> None:
    rig = make_rig(
        nodes=2, run="python train.py", meshes={"trainers": 1, "others": 1}, tls=make_authority()
    )
    rig.write("train.py", DRIVER + IDLE)
    rig.start()
    alive = {0: ["alive"] * 2, 1: ["alive"] * 2}
    rig.ingest.wait_for(lambda: states(latest(rig)) == alive, 180)
    host = next(each for each in latest(rig)["hosts"] if each["rank"] == 1)
    names = {actor["id"].partition("<")[0] for proc in host["procs"] for actor in proc["actors"]}
    assert names == {"probe"}

    os.kill(pids_of(rig)["others"][0], signal.SIGKILL)
    killed_at = time.monotonic()
    rig.ingest.wait_for(lambda: states(latest(rig)).get(1) == ["alive", "dead"], 60)
    assert time.monotonic() - killed_at < 15
    assert states(latest(rig))[0] == ["alive"] * 2
    (line,) = [text for text in rig.ingest.texts("portal") if "is dead" in text]
    assert "of rank 1" in line and "404 not_found" in line

    # What Monarch prints when it begins to be asked is nothing to the user.
    assert [text for text in rig.ingest.texts("stdout", 0) if "I am" not in text] == []
    rig.write("done", "")
    assert rig.ingest.end["reason"] == "COMPLETED"
    # Ending the meshes has made nobody take them for lost.
    assert [text for text in rig.ingest.texts("portal") if "unreachable" in text] == []
    rig.wait()


@pytest.mark.feature("P4.2")
def test_a_driver_that_monarch_ends_for_a_lost_proc_leaves_it_told_as_dead(make_rig) -> None:
    rig = make_rig(run="python train.py", meshes={"trainers": 1})
    # As most drivers are: a fault that Monarch can hand to nobody interrupts it.
    rig.write("train.py", DRIVER + IDLE.replace("monarch.actor.unhandled_fault_hook", "hook"))
    rig.start()
    rig.ingest.wait_for(lambda: states(latest(rig)) == {0: ["alive"] * 2}, 180)
    os.kill(pids_of(rig)["trainers"][0], signal.SIGKILL)
    assert rig.ingest.end["reason"] == "WORKER_LOST"
    rig.wait()
    assert states(latest(rig)) == {0: ["alive", "dead"]}
    assert latest(rig)["answers"]


def test_hosts_that_the_driver_has_shut_down_are_no_loss(make_rig) -> None:
    rig = make_rig(nodes=2, run="python train.py", meshes={"trainers": 1, "others": 1})
    waiting = 'meshes.others.shutdown().get(timeout=60)\nopen("shut", "w").close()\nwait("done")\n'
    rig.write("train.py", DRIVER + IDLE.replace('wait("done")', 'wait("go")') + waiting)
    rig.start()
    rig.ingest.wait_for(lambda: states(latest(rig)) == {0: ["alive"] * 2, 1: ["alive"] * 2}, 180)
    rig.write("go", "")

    def hosts() -> dict[int, str]:
        return {host["rank"]: host["state"] for host in latest(rig)["hosts"]}

    rig.ingest.wait_for(lambda: hosts() == {0: "up", 1: "ended"}, 120)
    rig.write("done", "")
    assert rig.ingest.end["reason"] == "COMPLETED"
    rig.wait()
    assert [text for text in rig.ingest.texts("portal") if "is unreachable" in text] == []


def test_no_admin_is_started_for_a_driver_that_wants_none(make_rig) -> None:
    rig = make_rig(run="MPORTAL_MESH_ADMIN=0 python train.py", meshes={"trainers": 1})
    rig.write(
        "train.py", DRIVER + IDLE + 'assert not os.path.exists(os.environ["MPORTAL_ADMINS_FILE"])'
    )
    rig.write("done", "")
    assert rig.run(120)["reason"] == "COMPLETED"
    assert rig.ingest.trees == []
