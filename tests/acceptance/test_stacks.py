"""A stack dump of a real job that hangs names the function it waits in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_jobs import JOBS, log_lines, newest, signed_in_page
from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOB = """
name: stalled
num_nodes: 2
workdir: {workdir}
run: python wait.py
"""
PROGRAM = """
import threading
def waits_for_nobody():
    print("now I wait", flush=True)
    threading.Event().wait()
def train():
    waits_for_nobody()
train()
"""
MONARCH_JOB = """
name: hanging-endpoint
num_nodes: 2
workdir: {workdir}
run: python train.py
portal: {{meshes: {{trainers: 2}}}}
"""
DRIVER = """
import threading
from mportal_runtime import meshes
from monarch.actor import Actor, endpoint
class Trainer(Actor):
    @endpoint
    def step(self):
        print("now I wait", flush=True)
        waits_for_nobody()
def waits_for_nobody():
    threading.Event().wait()
trainers = meshes.trainers.spawn_procs(per_host={"procs": 1}).spawn("trainer", Trainer)
trainers.step.call().get(timeout=600)
"""


def dumps(portal: PortalProcess, job: dict[str, Any], **query: Any) -> list[dict[str, Any]]:
    with portal.client() as client:
        answer = client.get(f"{JOBS}/{job['id']}/stacks", params=query)
        found: list[dict[str, Any]] = answer.json()["dumps"]
        return found


def waiting_job(
    portal: PortalProcess, name: str, spec: str, folder: Path, ranks: set[int]
) -> dict[str, Any]:
    """Return the job of `spec`, with code in `folder`, once `ranks` have printed that they wait."""
    file = folder.with_name("job.yaml")
    file.write_text(spec.format(workdir=folder))
    assert portal.mportal("submit", "-f", str(file)).returncode == 0
    job = newest(portal, name)

    def waiting_ranks() -> set[int]:
        lines = log_lines(portal, job, stream="stdout")
        return {line["rank"] for line in lines if "now I wait" in line["text"]}

    assert eventually(lambda: ranks <= waiting_ranks(), timeout_s=180)
    return job


@pytest.mark.feature("P4.3")
@pytest.mark.timeout(300)
def test_a_stack_dump_names_the_stuck_function_and_stays_after_the_end(
    portal: PortalProcess, tmp_path: Path
) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "wait.py").write_text(PROGRAM)
    job = waiting_job(portal, "stalled", JOB, folder, {0, 1})
    with portal.client() as client:
        for rank in (0, 1):
            requested = client.post(f"{JOBS}/{job['id']}/stacks", json={"rank": rank})
            assert requested.status_code == 202, requested.text
            assert requested.json()["state"] == "asked"
    assert eventually(
        lambda: [each["state"] for each in dumps(portal, job)] == ["done", "done"], timeout_s=60
    ), dumps(portal, job)
    for row, rank in zip(dumps(portal, job), (1, 0), strict=True):
        assert row["rank"] == rank
        (dump,) = dumps(portal, job, id=row["id"])
        (process,) = dump["processes"]
        assert "waits_for_nobody (wait.py:5)" in process["text"]
        assert "train (wait.py:7)" in process["text"]
        assert process["command"] == "python wait.py"
    said = portal.mportal("stacks", str(job["id"]), "--rank", "1")
    assert said.returncode == 0, said.stderr
    assert "waits_for_nobody (wait.py:5)" in said.stdout
    # It was looked at, not touched.
    assert newest(portal, "stalled")["status"] == "RUNNING"

    assert portal.mportal("cancel", str(job["id"])).returncode == 0
    assert eventually(lambda: newest(portal, "stalled")["is_final"], timeout_s=60)
    assert len(dumps(portal, job)) == 3
    page = signed_in_page(portal, f"/default/jobs/{job['id']}/nodes?show=stacks")
    assert "waits_for_nobody (wait.py:5)" in page


@pytest.mark.feature("P4.3")
@pytest.mark.timeout(300)
def test_of_a_monarch_job_the_endpoint_that_hangs_is_named(
    portal: PortalProcess, tmp_path: Path
) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(DRIVER)
    job = waiting_job(portal, "hanging-endpoint", MONARCH_JOB, folder, {1})
    said = portal.mportal("stacks", str(job["id"]), "--rank", "1")
    assert said.returncode == 0, said.stderr
    assert "waits_for_nobody (train.py:11)" in said.stdout
    # The driver, on rank 0, waits for the answer.
    said = portal.mportal("stacks", str(job["id"]), "--rank", "0")
    assert "<module> (train.py:13)" in said.stdout
    assert portal.mportal("cancel", str(job["id"])).returncode == 0
    assert eventually(lambda: newest(portal, "hanging-endpoint")["is_final"], timeout_s=60)
