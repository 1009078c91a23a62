"""A real program prints a GPU error: the line is noted, and its node is treated by policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.test_jobs import attempts, newest
from tests.portal_process import PortalProcess
from tests.waiting import eventually

ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
JOB = f"""
name: broken-gpu
num_nodes: 2
run: |
  echo step 1
  if [ "$SKYPILOT_NODE_RANK" = 1 ]; then echo "{ECC}" >&2; exit 3; fi
  sleep 600
portal:
  retry: {{max_attempts: 2}}
"""


def history(portal: PortalProcess, number: int) -> list[dict]:
    with portal.client() as client:
        found: list[dict] = client.get(f"/api/v1/projects/default/jobs/{number}/events").json()[
            "results"
        ]
    return [event for event in found if event["verb"] == "log_policy"]


@pytest.mark.feature("P3.4")
@pytest.mark.timeout(400)
def test_a_planted_ecc_line_is_noted_with_its_number_and_its_node(
    portal: PortalProcess, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    assert portal.mportal("submit", "-f", str(file)).returncode == 0
    job = newest(portal, "broken-gpu")
    assert eventually(lambda: len(attempts(portal, job)) == 2, timeout_s=180)
    (note,) = [event for event in history(portal, job["id"]) if event["attempt"] == 1]
    assert f"(rank 1): {ECC}" in note["message"]
    # This machine is the only one that the local backend has, and the message names it.
    assert note["message"].endswith("On the local backend all nodes are this one machine.")
    with portal.client() as client:
        path = f"/api/v1/projects/default/jobs/{job['id']}/logs"
        lines = client.get(path, params={"attempt": 1}).json()["results"]
    assert [line["text"] for line in lines if line["line"] == note["line"]] == [ECC]
    assert eventually(lambda: newest(portal, "broken-gpu")["is_final"], timeout_s=180)
