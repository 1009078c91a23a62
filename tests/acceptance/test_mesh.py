"""The meshes of a real Monarch job: a process that is killed shows while the driver waits."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_jobs import JOBS, attempts, log_lines, newest, signed_in_page
from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOB = """
name: idle-driver
num_nodes: 2
workdir: {workdir}
run: python train.py
portal: {{meshes: {{trainers: 2}}}}
"""
# After its first words it says nothing more to Monarch, and goes on whatever that reports.
DRIVER = """
import os, time
import monarch.actor
monarch.actor.unhandled_fault_hook = lambda failure: None
from mportal_runtime import meshes
from monarch.actor import Actor, endpoint
class Trainer(Actor):
    @endpoint
    def begin(self):
        print("epoch 3, loss 0.25, process", os.getpid(), flush=True)
trainers = meshes.trainers.spawn_procs(per_host={"procs": 1}).spawn("trainer", Trainer)
trainers.begin.call().get(timeout=120)
time.sleep(600)
"""


def mesh(portal: PortalProcess, job: dict[str, Any]) -> dict[str, Any]:
    with portal.client() as client:
        answer: dict[str, Any] = client.get(f"{JOBS}/{job['id']}/mesh").json()
        return answer


def trainers(portal: PortalProcess, job: dict[str, Any]) -> dict[int, str]:
    """Return the state of the one proc of each rank."""
    return {
        host["rank"]: proc["state"] for host in mesh(portal, job)["hosts"] for proc in host["procs"]
    }


@pytest.mark.feature("P4.2")
@pytest.mark.timeout(400)
def test_a_killed_process_shows_with_evidence_and_last_lines_while_the_driver_waits(
    portal, tmp_path: Path
) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(DRIVER)
    file = tmp_path / "job.yaml"
    file.write_text(JOB.format(workdir=folder))
    assert portal.mportal("submit", "-f", str(file)).returncode == 0
    job = newest(portal, "idle-driver")
    assert eventually(lambda: trainers(portal, job) == {0: "alive", 1: "alive"}, timeout_s=180)

    def said() -> list[str]:
        lines = log_lines(portal, job, stream="stdout", rank=1)
        return [line["text"] for line in lines if line["text"].startswith("epoch 3")]

    assert eventually(said, timeout_s=60)
    words = said()[0]
    os.kill(int(words.split()[-1]), signal.SIGKILL)
    assert eventually(lambda: trainers(portal, job) == {0: "alive", 1: "dead"}, timeout_s=60)
    changes = mesh(portal, job)["changes"]
    loss = next(each for each in changes if (each["state"], each["rank"]) == ("dead", 1))
    assert loss["was"] == "alive"
    assert "404 not_found" in loss["why"]
    assert words in [line["text"] for line in loss["lines"]]
    assert newest(portal, "idle-driver")["status"] == "RUNNING"

    assert portal.mportal("cancel", str(job["id"])).returncode == 0
    assert eventually(lambda: newest(portal, "idle-driver")["is_final"], timeout_s=60)
    assert eventually(lambda: attempts(portal, job)[0]["stages"][-1]["ended_at"], timeout_s=60)
    # The machines are terminated; the reports stay, and their end made nothing worse.
    assert trainers(portal, job) == {0: "alive", 1: "dead"}
    page = signed_in_page(portal, f"/default/jobs/{job['id']}/nodes?show=mesh")
    assert "1 failure" in page
    assert words in page
