"""Jobs that request the same machines, and endings that leave the machines healthy."""

from __future__ import annotations

import pytest

from jobs.policies.reuse import fingerprint, leaves_healthy
from jobs.statuses import StopReason
from monarch_client.spec import JobSpec

BASE = {"resources": {"accelerators": "H100:8"}}


def of(nodes: int = 1, backend: str = "fake", **fields) -> str:
    spec = {"name": "hello", "run": "echo hello", "num_nodes": nodes, **BASE | fields}
    return fingerprint(JobSpec.parse(spec), backend)


def test_what_runs_does_not_matter():
    workdir = "upload:" + "0" * 64
    assert of() == of(run="python other.py", name="other", setup="pip install", envs={"A": "b"})
    assert of() == of(workdir=workdir, file_mounts={"/data": workdir})
    assert of() == of(portal={"reuse": True, "idle": {"minutes": 3}, "port": 30_000})


@pytest.mark.parametrize(
    "other",
    [
        {"resources": {"accelerators": "H100:4"}},
        {"resources": {"accelerators": "H100:8", "image_id": "docker:ubuntu"}},
        {"resources": {}},
        {"volumes": {"/mnt": "data"}},
        {"file_mounts": {"/data": "s3://bucket"}},
        {"nodes": 2},
        {"backend": "skypilot"},
    ],
)
def test_other_machines_are_others(other):
    assert of() != of(**other)


def test_machines_are_not_trusted_after_an_ending_that_may_be_theirs():
    bad = {
        StopReason.WORKER_LOST,
        StopReason.BACKEND,
        StopReason.NO_CAPACITY,
        StopReason.WORKER_NEVER_READY,
        StopReason.PYTHON_MISMATCH,
        StopReason.MONARCH,
        StopReason.OOM,
        StopReason.DEPENDENCY,
    }
    assert {reason for reason in StopReason if not leaves_healthy(reason)} == bad
