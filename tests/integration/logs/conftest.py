"""Fixtures that the tests of the log share: an attempt, its runner's posts, its own blob store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.models import Attempt
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body
from tests.s3_server import Bucket, closed_port

Post = Callable[..., dict[str, int]]


@pytest.fixture(autouse=True)
def blob_store(settings: Any, tmp_path: Path) -> Path:
    """Return the folder where this test's chunks are stored."""
    settings.MEDIA_ROOT = tmp_path / "blobs"
    return tmp_path / "blobs"


@pytest.fixture
def attempt(db: None) -> Attempt:
    """Create an open attempt of a running job with two nodes."""
    return make_attempt(make_job(status="RUNNING", num_nodes=2))


@pytest.fixture
def post(attempt: Attempt) -> Post:
    """Post frames as the attempt's runner does."""
    token = attempt_token(attempt.job_id, attempt.number)
    return lambda *frames: ingest_frames(attempt.pk, token, body(*frames))


@pytest.fixture
def bucket(s3_server, settings: Any) -> Bucket:
    """Create a bucket that the portal knows; new chunks still go to files."""
    made: Bucket = s3_server.bucket()
    settings.STORAGES = {**settings.STORAGES, "s3": made.storage}
    return made


@pytest.fixture
def s3(bucket: Bucket, settings: Any) -> Bucket:
    """Create a bucket that new chunks go to."""
    settings.MPORTAL_LOG_STORE = "s3"
    return bucket


@pytest.fixture
def unreachable_store(settings: Any) -> Callable[[], None]:
    """Have the server of S3 away from now on."""

    def go() -> None:
        entry = settings.STORAGES["s3"]
        endpoint = f"http://127.0.0.1:{closed_port()}"
        away = {**entry, "OPTIONS": {**entry["OPTIONS"], "endpoint": endpoint}}
        settings.STORAGES = {**settings.STORAGES, "s3": away}

    return go
