"""What the tests of the log share: an attempt, its runner's posts, its own blob store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.actions.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.models import Attempt
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body

Post = Callable[..., dict[str, int]]


@pytest.fixture(autouse=True)
def blob_store(settings: Any, tmp_path: Path) -> Path:
    """Where this test's chunks lie."""
    settings.MEDIA_ROOT = tmp_path / "blobs"
    return tmp_path / "blobs"


@pytest.fixture
def attempt(db: None) -> Attempt:
    """An open attempt of a running job with two nodes."""
    return make_attempt(make_job(status="RUNNING", num_nodes=2))


@pytest.fixture
def post(attempt: Attempt) -> Post:
    """Post frames as the attempt's runner does."""
    token = attempt_token(attempt.job_id, attempt.number)
    return lambda *frames: ingest_frames(attempt.pk, token, body(*frames))
