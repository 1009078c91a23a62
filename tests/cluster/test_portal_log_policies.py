"""A node whose log reports a broken GPU is left out of the next attempt, by Slurm itself."""

from __future__ import annotations

import pytest

from tests.cluster.portal import JOBS, PortalOnRig

ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"


def host_of(portal: PortalOnRig, number: int, attempt: int) -> str:
    """Return the host on which an attempt ran, from its program's first line."""
    with portal.client() as client:
        answer = client.get(f"{JOBS}/{number}/logs", params={"attempt": attempt})
    lines = [row["text"] for row in answer.json()["results"] if row["stream"] == "stdout"]
    return str(lines[0])


@pytest.mark.feature("P3.4")
@pytest.mark.timeout(900)
def test_a_planted_ecc_line_keeps_the_next_attempt_off_its_node(portal: PortalOnRig) -> None:
    number = portal.submit(
        name="broken-gpu",
        resources={"infra": "slurm/rig/main"},
        run=f"hostname; echo '{ECC}' >&2; exit 1",
        portal={"retry": {"max_attempts": 2}},
    )
    portal.wait_for(number, "FAILED", timeout_s=600)
    assert len(portal.attempts(number)) == 2
    first, second = (host_of(portal, number, attempt) for attempt in (1, 2))
    with portal.client() as client:
        events = client.get(f"{JOBS}/{number}/events").json()["results"]
    noted = [event["message"] for event in events if event["verb"] == "log_policy"]
    assert noted[0].endswith(f"Further attempts avoid the node {first}.")
    assert second != first
