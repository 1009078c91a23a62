"""Jobs that wait for one another, and arrays, on a real portal: real processes, in their order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.test_jobs import JOBS, log_lines
from tests.portal_process import PortalProcess
from tests.waiting import eventually

DAG = """
name: dag-report
run: echo report
portal: {depends_on: [dag-train, {job: dag-check, after: end}]}
---
name: dag-prepare
run: sleep 0.3; echo prepared
---
name: dag-check
run: exit 3
portal: {depends_on: [dag-prepare]}
---
name: dag-train
run: sleep 0.3; echo trained
portal: {depends_on: [dag-prepare]}
---
name: dag-never
run: echo never
portal: {depends_on: [dag-check]}
"""
SWEEP = """
name: sweep
run: |
  echo "lr $LR of $MPORTAL_ARRAY_INDEX"
  sleep 0.5
  [ $MPORTAL_ARRAY_INDEX -ne 2 ] || [ -e {once} ] || { touch {once}; exit 4; }
portal:
  array: {lr: [1e-4, 3e-4, 1e-3, 3e-3]}
  max_parallel: 2
"""


def ended(portal: PortalProcess, ids: list[int]) -> list[dict]:
    """Return the jobs, once all have ended."""

    def all_of_them() -> list[dict]:
        with portal.client() as client:
            return [client.get(f"{JOBS}/{job_id}").json() for job_id in ids]

    assert eventually(lambda: all(job["is_final"] for job in all_of_them()), timeout_s=120)
    return all_of_them()


@pytest.mark.feature("S2.6")
def test_a_dag_runs_in_its_order_and_a_failure_ends_only_what_needs_a_success(portal, tmp_path):
    file = tmp_path / "dag.yaml"
    file.write_text(DAG)
    done = portal.mportal("submit", "-o", "json", str(file))
    assert done.returncode == 0, done.stderr
    jobs = {
        job["name"]: job for job in ended(portal, [row["id"] for row in json.loads(done.stdout)])
    }
    assert {name: job["status"] for name, job in jobs.items()} == {
        "dag-report": "SUCCEEDED",
        "dag-prepare": "SUCCEEDED",
        "dag-check": "FAILED",
        "dag-train": "SUCCEEDED",
        "dag-never": "FAILED",
    }
    prepare, train, report = (jobs[f"dag-{name}"] for name in ("prepare", "train", "report"))
    assert prepare["ended_at"] <= train["started_at"] < train["ended_at"] <= report["started_at"]
    assert prepare["ended_at"] <= jobs["dag-check"]["started_at"]
    never = jobs["dag-never"]
    assert (never["started_at"], never["stop_reason"], never["attempt_count"]) == (
        None,
        "DEPENDENCY",
        0,
    )
    assert f"job {jobs['dag-check']['id']} (dag-check) failed" in never["message"]


@pytest.mark.feature("S2.6")
def test_a_sweep_is_watched_as_one_keeps_its_limit_and_runs_again_what_failed(portal, tmp_path):
    once, file = tmp_path / "once", tmp_path / "sweep.yaml"
    # Jobs may run under another user.
    tmp_path.chmod(0o777)
    file.write_text(SWEEP.replace("{once}", str(_reachable(once))))
    done = portal.mportal("submit", "-o", "json", str(file))
    assert done.returncode == 0, done.stderr
    array = json.loads(done.stdout)
    jobs = ended(portal, [job["id"] for job in array["jobs"]])
    assert [job["status"] for job in jobs] == ["SUCCEEDED", "SUCCEEDED", "FAILED", "SUCCEEDED"]
    said = [log_lines(portal, job, stream="stdout")[0]["text"] for job in jobs]
    assert said == [f"lr {lr} of {i}" for i, lr in enumerate(("1e-4", "3e-4", "1e-3", "3e-3"))]
    moments = [(job["started_at"], 1) for job in jobs] + [(job["ended_at"], -1) for job in jobs]
    at_once = 0
    for _, change in sorted(moments):
        at_once += change
        assert at_once <= 2
    again = portal.mportal("array", "rerun-failed", str(array["id"]))
    assert again.returncode == 0, again.stderr
    with portal.client() as client:
        path = f"/api/v1/projects/default/arrays/{array['id']}"
        third = client.get(path).json()["jobs"][2]
        assert third["rerun_of"] == jobs[2]["id"]
        ended(portal, [third["id"]])
        assert client.get(path).json()["is_final"] is True
    shown = portal.mportal("array", "get", str(array["id"]))
    assert "lr=1e-3" in shown.stdout


@pytest.mark.feature("S2.6")
def test_a_sweep_is_cancelled_as_one(portal, tmp_path):
    file = tmp_path / "long.yaml"
    file.write_text(
        "name: long\nrun: sleep 600\nportal: {array: {seed: [1, 2, 3, 4]}, max_parallel: 2}\n"
    )
    array = json.loads(portal.mportal("submit", "-o", "json", str(file)).stdout)
    with portal.client() as client:
        path = f"/api/v1/projects/default/arrays/{array['id']}"
        assert eventually(lambda: client.get(path).json()["counts"].get("RUNNING") == 2)
    assert portal.mportal("array", "cancel", str(array["id"])).returncode == 0
    jobs = ended(portal, [job["id"] for job in array["jobs"]])
    assert {job["status"] for job in jobs} == {"CANCELLED"}
    assert [job["attempt_count"] for job in jobs] == [1, 1, 0, 0]


def _reachable(place: Path) -> Path:
    """Return a folder that another user's job can write to; pytest closes the folders above it."""
    import tempfile

    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    return folder / place.name
