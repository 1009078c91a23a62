"""A job with a log, for tests that read logs over REST: `tests.integration.api` alone."""

from __future__ import annotations

from typing import Any

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.models import Attempt, Job
from tests.factories import make_attempt, make_job, make_project
from tests.frame_bytes import body, lines


def make_logged_job() -> Job:
    """Create a running job of project vision: two nodes, two attempts of five and three lines."""
    job = make_job(make_project("vision"), status="RUNNING", num_nodes=2)
    first = make_attempt(job, ended_at="2026-01-01T00:00:00Z")
    ingest(first, *lines(1, 3), *lines(1, 2, rank=1, stream="stderr"))
    ingest(make_attempt(job), *lines(1, 3))
    return job


def ingest(attempt: Attempt, *frames: Any) -> None:
    """Store frames as the attempt's runners push them."""
    ingest_frames(attempt.pk, attempt_token(attempt.job_id, attempt.number), body(*frames))


def places(answer: Any) -> list[str]:
    """List the lines of an answer, as attempt:line."""
    return [f"{row['attempt']}:{row['line']}" for row in answer.json()["results"]]
