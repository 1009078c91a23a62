"""Run jobs on a real GPU: which GPU they get, what is measured of it, and what ends them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_jobs import JOBS, newest
from tests.portal_process import PortalProcess
from tests.waiting import eventually

HERE = Path(__file__).parent
GIB = 1 << 30
BUSY_PERCENT = 50


def submit(portal: PortalProcess, folder: Path, text: str, *programs: str) -> None:
    """Submit a job whose working directory holds the programs."""
    for program in programs:
        shutil.copy(HERE / program, folder)
    file = folder / "job.yaml"
    file.write_text(text)
    done = portal.mportal("submit", "-d", "-f", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def cancel(portal: PortalProcess, name: str) -> None:
    """Cancel the newest job of this name and wait for its end."""
    portal.mportal("cancel", str(newest(portal, name)["id"]))
    assert eventually(lambda: newest(portal, name)["is_final"], timeout_s=60)


def log_of(portal: PortalProcess, name: str) -> str:
    return portal.mportal("logs", str(newest(portal, name)["id"])).stdout


def hosts(portal: PortalProcess, job: dict[str, Any]) -> list[dict[str, Any]]:
    with portal.client() as client:
        found: list[dict[str, Any]] = client.get(f"{JOBS}/{job['id']}/metrics").json()["hosts"]
    return found


@pytest.mark.feature("P4.1")
@pytest.mark.timeout(240)
def test_use_and_memory_of_a_busy_gpu_are_measured_and_the_next_job_waits_for_it(
    portal: PortalProcess, gpu: str, tmp_path: Path
) -> None:
    job = f"workdir: .\nresources: {{accelerators: '{gpu}:1'}}\nrun: python multiply.py 300\n"
    submit(portal, tmp_path, "name: busy\n" + job, "multiply.py")

    def first_gpu() -> dict[str, Any]:
        gpus = [each for host in hosts(portal, newest(portal, "busy")) for each in host["gpus"]]
        return gpus[0] if gpus else {}

    assert eventually(
        lambda: (first_gpu().get("utilization") or 0) > BUSY_PERCENT, timeout_s=120
    ), log_of(portal, "busy") + portal.logs()
    seen = first_gpu()
    assert GIB / 4 < seen["memory_used"] < seen["memory_total"]
    assert gpu in log_of(portal, "busy")

    submit(portal, tmp_path, "name: second\n" + job)
    assert eventually(lambda: newest(portal, "second")["wait_message"], timeout_s=30)
    assert newest(portal, "second")["wait_message"] == "Needs 1 GPU; 0 of 1 are free on local."
    cancel(portal, "second")
    cancel(portal, "busy")


@pytest.mark.timeout(240)
def test_procs_of_a_mesh_compute_on_the_gpu_and_read_each_others_tensors(
    portal: PortalProcess, gpu: str, tmp_path: Path
) -> None:
    text = f"name: mesh\nworkdir: .\nresources: {{accelerators: '{gpu}:1'}}\nrun: python mesh.py\n"
    submit(portal, tmp_path, text + "portal: {meshes: {trainers: 1}}\n", "mesh.py")
    assert eventually(lambda: newest(portal, "mesh")["is_final"], timeout_s=200)
    lines = log_of(portal, "mesh")
    assert newest(portal, "mesh")["status"] == "SUCCEEDED", lines
    results = [line for line in lines.splitlines() if line.startswith(("owner ", "reader "))]
    assert [line.rpartition(" ")[2] for line in results] == ["True", "True"]
    assert gpu in results[0]


@pytest.mark.feature("S4.4")
@pytest.mark.timeout(300)
def test_tasks_and_actors_compute_on_the_gpu_that_they_were_given(
    portal: PortalProcess, gpu: str, tmp_path: Path
) -> None:
    text = (
        f"name: tasks\nworkdir: .\nresources: {{accelerators: '{gpu}:1'}}\nrun: python tasks.py\n"
    )
    submit(portal, tmp_path, text + "portal: {meshes: {trainers: 1}}\n", "tasks.py")
    assert eventually(lambda: newest(portal, "tasks")["is_final"], timeout_s=240)
    text = log_of(portal, "tasks")
    assert newest(portal, "tasks")["status"] == "SUCCEEDED", text
    results = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    assert results["task"].split()[1:] == ["1", "True"]
    assert results["halves"] == "True"
    # An actor gets the memory that the process of an ended task had kept.
    assert [int(each) for each in results["memory"].split()] >= [59, 59], results["memory"]
    assert "2 GPU was requested" in results["refused"]


@pytest.mark.feature("P6.2")
@pytest.mark.timeout(300)
def test_a_job_that_leaves_its_gpu_idle_is_ended(
    portal: PortalProcess, gpu: str, tmp_path: Path
) -> None:
    text = f"name: idle\nresources: {{accelerators: '{gpu}:1'}}\nrun: sleep 600\n"
    submit(portal, tmp_path, text + "portal: {idle: {minutes: 1, gpu_below: 5}}\n")
    assert eventually(lambda: newest(portal, "idle")["is_final"], timeout_s=240)
    ended = newest(portal, "idle")
    assert (ended["status"], ended["stop_reason"]) == ("CANCELLED", "IDLE")
