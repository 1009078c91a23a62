"""A portal that keeps its logs in S3: a job's log from its first line to its move into files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zstandard

from tests.acceptance.test_secrets import rows
from tests.portal_process import PortalProcess
from tests.s3_server import KEYS, Bucket
from tests.waiting import eventually

SECRET = "planted-7Qx9Zk41-secret"
JOB = """
name: keeps-its-log-far-away
secrets: [HUB_TOKEN]
run: |
  for step in $(seq 200); do echo "step $step of rank $SKYPILOT_NODE_RANK"; done
  echo "the token is $HUB_TOKEN"
  env
"""


@pytest.fixture
def bucket(s3_server) -> Bucket:
    return s3_server.bucket()


@pytest.fixture
def portal(bucket) -> Iterator[PortalProcess]:
    """Yield a portal that stores new chunks in S3."""
    process = PortalProcess(MPORTAL_LOG_STORE="s3", **bucket.environment)
    try:
        process.start()
        yield process
    finally:
        process.close()


def all_moved(portal: PortalProcess, bucket: Bucket, to: str) -> bool:
    """Move all logs; whether they are stored there then, and nowhere else."""
    moved = portal.manage("move_logs", "--to", to)
    assert moved.returncode == 0, moved.stdout + moved.stderr
    blobs = list((portal.home.path / "blobs" / "logs").rglob("*.zst"))
    return (bool(blobs), bool(bucket.names())) == (to == "files", to == "s3")


@pytest.mark.timeout(600)
@pytest.mark.feature("P3.3")
def test_a_log_lies_in_s3_without_its_secret_and_moves_into_files_and_back(
    portal, bucket, tmp_path
) -> None:
    (tmp_path / "token").write_text(SECRET)
    done = portal.mportal("secret", "set", "HUB_TOKEN", "--from-file", str(tmp_path / "token"))
    assert done.returncode == 0, done.stderr
    (tmp_path / "job.yaml").write_text(JOB)
    followed = portal.mportal("submit", "--follow", "-f", str(tmp_path / "job.yaml"))
    assert followed.returncode == 0, followed.stdout + followed.stderr
    with portal.client() as client:
        jobs = "/api/v1/projects/default/jobs"
        job = client.get(jobs).json()["results"][0]["id"]
        # The attempt has ended: what is left of its tail is sealed within seconds.
        assert eventually(bucket.names, timeout_s=60), portal.logs()
        before = client.get(f"{jobs}/{job}/logs/download").text
        assert "step 200 of rank 0" in before and "the token is ***" in before
        assert not [key for key in KEYS.values() if key in before]
        stored = [zstandard.decompress(bucket.content(key)) for key in bucket.names()]
        assert any(b"step 200" in content for content in stored)
        assert not [content for content in stored if SECRET.encode() in content]
        assert not [row for row in rows(portal) if SECRET.encode() in row]
        for to in ("files", "s3"):
            # Lines that came after the attempt's end are sealed a few seconds later than the rest.
            assert eventually(lambda to=to: all_moved(portal, bucket, to), timeout_s=120)
            assert client.get(f"{jobs}/{job}/logs/download").text == before
