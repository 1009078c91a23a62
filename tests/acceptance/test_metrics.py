"""Host samples of a real job are shown while it runs, and after its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests import stand_in_nvml
from tests.acceptance.test_jobs import JOBS, attempts, newest, signed_in_page
from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOB = """
name: busy-hosts
num_nodes: 2
run: sleep 600
"""


@pytest.fixture
def portal() -> Iterator[PortalProcess]:
    """Yield a portal whose nodes load a stand-in for NVML and sample their hosts every second."""
    process = PortalProcess(MPORTAL_METRICS_SECONDS="1")
    folder = process.root / "nvml"
    folder.mkdir(mode=0o755)
    try:
        library = stand_in_nvml.build(folder, use_percent=88)
        process.environment["MPORTAL_NVML_LIBRARY"] = str(library)
        process.start()
        yield process
    finally:
        process.close()


def metrics(portal: PortalProcess, job: dict[str, Any], **query: Any) -> dict[str, Any]:
    with portal.client() as client:
        answer: dict[str, Any] = client.get(f"{JOBS}/{job['id']}/metrics", params=query).json()
        return answer


@pytest.mark.feature("P4.1")
@pytest.mark.timeout(400)
def test_hosts_of_a_real_job_report_samples_that_are_readable_when_they_are_gone(
    portal, tmp_path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    assert portal.mportal("submit", "-f", str(file)).returncode == 0
    job = newest(portal, "busy-hosts")

    def uses() -> list[list[float | None]]:
        hosts = metrics(portal, job)["hosts"]
        return [[gpu["utilization"] for gpu in host["gpus"]] for host in hosts]

    assert eventually(lambda: uses() == [[88, 88, None]] * 2, timeout_s=120)
    shown = portal.mportal("top", str(job["id"]))
    assert shown.returncode == 0
    assert "88 88 -" in shown.stdout

    def points() -> int:
        return len(metrics(portal, job, rank=1)["series"]["columns"]["t"])

    assert eventually(lambda: points() >= 3, timeout_s=120)
    assert portal.mportal("cancel", str(job["id"])).returncode == 0
    assert eventually(lambda: newest(portal, "busy-hosts")["is_final"], timeout_s=60)
    assert eventually(lambda: attempts(portal, job)[0]["stages"][-1]["ended_at"], timeout_s=60)

    found = metrics(portal, job, rank=1)
    assert (found["is_over"], found["attempt"]) == (True, 1)
    first, second = found["hosts"]
    assert 0 < first["memory_used"] < first["memory_total"]
    assert 0 <= second["disk_used"] <= second["disk_total"]
    assert set(found["series"]["columns"]["gpu"][0]) == {88}
    assert "as last reported" in portal.mportal("top", str(job["id"])).stdout
    page = signed_in_page(portal, f"/default/jobs/{job['id']}/nodes?show=metrics&rank=1")
    assert "as last reported" in page
    assert 'aria-label="GPU use. GPU 0: last 88 %, mean 88 %, highest 88 %.' in page
    assert page.count("<polyline") >= 5
