"""A real program that runs on while its GPUs are idle is ended, and the reason is reported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import stand_in_nvml
from tests.acceptance.test_jobs import attempts, newest
from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOB = """
name: waits-in-vain
num_nodes: 2
run: |
  while true; do echo still here; sleep 5; done
portal:
  idle: {minutes: 1, gpu_below: 5}
"""


@pytest.fixture
def portal() -> Iterator[PortalProcess]:
    """Yield a portal whose nodes load a stand-in for NVML with two busy GPUs."""
    process = PortalProcess(MPORTAL_METRICS_SECONDS="1")
    folder = process.root / "nvml"
    folder.mkdir(mode=0o755)
    try:
        library = stand_in_nvml.build(folder, use_percent=88, gpus=2)
        process.environment["MPORTAL_NVML_LIBRARY"] = str(library)
        process.start()
        yield process
    finally:
        process.close()


@pytest.mark.feature("P6.2")
@pytest.mark.timeout(600)
def test_a_program_that_lives_on_beside_idle_gpus_is_ended(portal: PortalProcess, tmp_path: Path):
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    assert portal.mportal("submit", "-f", str(file)).returncode == 0

    def job() -> dict:
        return newest(portal, "waits-in-vain")

    assert eventually(lambda: job()["status"] == "RUNNING", timeout_s=120)
    library = Path(portal.environment["MPORTAL_NVML_LIBRARY"])
    stand_in_nvml.set_use(library, 0)
    assert eventually(lambda: job()["is_final"], timeout_s=300)
    ended = job()
    assert (ended["status"], ended["stop_reason"]) == ("CANCELLED", "IDLE")
    assert ended["message"].startswith("Its 4 GPUs on 2 hosts were used less than 5 % for 1 min")
    assert "portal.idle.minutes" in ended["hint"]
    # It was not ended before: it printed as long as it could.
    assert "still here" in portal.mportal("logs", str(ended["id"])).stdout
    assert attempts(portal, ended)[0]["stop_reason"] == "IDLE"
