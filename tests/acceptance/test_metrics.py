"""Hosts of a real job: what they tell is there while it runs, and still there after its end."""

from __future__ import annotations

from typing import Any

from tests.acceptance.test_jobs import JOBS, attempts, newest
from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOB = """
name: busy-hosts
num_nodes: 2
run: sleep 600
"""


def metrics(portal: PortalProcess, job: dict[str, Any], **query: Any) -> dict[str, Any]:
    with portal.client() as client:
        answer: dict[str, Any] = client.get(f"{JOBS}/{job['id']}/metrics", params=query).json()
        return answer


def test_hosts_of_a_real_job_tell_of_themselves_and_are_readable_when_they_are_gone(
    portal, tmp_path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    assert portal.mportal("submit", "-f", str(file)).returncode == 0
    job = newest(portal, "busy-hosts")

    def told() -> bool:
        return [host["at"] is not None for host in metrics(portal, job)["hosts"]] == [True, True]

    assert eventually(told, timeout_s=60)
    shown = portal.mportal("top", str(job["id"]))
    assert shown.returncode == 0
    assert "Attempt 1" in shown.stdout
    assert portal.mportal("cancel", str(job["id"])).returncode == 0
    assert eventually(lambda: newest(portal, "busy-hosts")["is_final"], timeout_s=60)
    (attempt,) = attempts(portal, job)
    assert eventually(lambda: attempts(portal, job)[0]["stages"][-1]["ended_at"], timeout_s=60)
    found = metrics(portal, job, rank=1)
    assert (found["is_over"], found["attempt"]) == (True, attempt["number"])
    first, second = found["hosts"]
    assert 0 < first["memory_used"] < first["memory_total"]
    assert 0 < second["disk_used"] <= second["disk_total"]
    assert found["series"]["columns"]["memory"]
    shown = portal.mportal("top", str(job["id"]))
    assert "as they last told" in shown.stdout
