"""A job's requested machines reach SkyPilot as written, by the test of SkyPilot's own parser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import LaunchRequest
from jobs.backends.skypilot.task import task_for

ROOT = Path(__file__).resolve().parents[4]


def read(folder: Path, spec: dict[str, Any], **secrets: str) -> dict[str, Any]:
    """Parse the task of a job with SkyPilot, in a process, since it leaves threads behind."""
    request = LaunchRequest(
        cluster_name="mp-1",
        project_slug="rl",
        job_id=1,
        job_name="hello",
        attempt_id=1,
        attempt_number=1,
        spec=spec,
        num_nodes=1,
        portal_url="",
        token="secret-token",
        secrets=secrets,
    )
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.backends.skypilot.reading"],
        input=json.dumps(task_for(request, str(folder))),
        env={**environment, "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.rpartition("found ")[2])
    return found


@pytest.mark.feature("S2.3")
def test_an_image_and_the_account_of_its_registry(tmp_path: Path) -> None:
    image = "registry.example.org/team/cuda:12"
    account = {
        "SKYPILOT_DOCKER_USERNAME": "robot",
        "SKYPILOT_DOCKER_PASSWORD": "its password",
        "SKYPILOT_DOCKER_SERVER": "registry.example.org",
    }
    spec = {"resources": {"infra": "aws/us-east-1", "image_id": f"docker:{image}"}}
    found = read(tmp_path, spec, **account)
    assert found["image"] == image
    assert found["login"] == list(account.values())


@pytest.mark.feature("S2.4")
def test_buckets_to_copy_and_to_mount_and_volumes(tmp_path: Path) -> None:
    mounts = {
        "/copied": "s3://bucket/part",
        "/mounted": {"source": "gs://other", "mode": "MOUNT"},
        "/made": {"name": "scratch-bucket", "mode": "MOUNT_CACHED"},
    }
    volumes = {"/kept": "a-volume"}
    spec = {"resources": {"infra": "k8s"}, "file_mounts": mounts, "volumes": volumes}
    found = read(tmp_path, spec)
    assert found["copied"] == {"/copied": "s3://bucket/part"}
    assert found["mounted"] == {
        "/mounted": ["gs://other", None, "MOUNT"],
        "/made": [None, "scratch-bucket", "MOUNT_CACHED"],
    }
    assert found["volumes"] == volumes
