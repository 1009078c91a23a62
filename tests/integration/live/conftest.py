"""A web server inside the test process, and a reader of its streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.models import Attempt, Job
from monarch_client.rest.server_sent import ServerSentEvent, read_events
from tests.factories import make_attempt, make_job, make_member, make_token
from tests.frame_bytes import body
from tests.serving import serving

Events = Iterator[ServerSentEvent]


@pytest.fixture(autouse=True)
def blob_store(settings: Any, tmp_path: Path) -> None:
    """Store the chunks of these tests in a separate directory."""
    settings.MEDIA_ROOT = tmp_path / "blobs"


@pytest.fixture
def web(transactional_db: None, redis_client: object) -> Iterator[str]:
    """Yield the address of a server on the test's database and Redis."""
    with serving() as address:
        yield address


@pytest.fixture
def job(transactional_db: None) -> Job:
    """Create a running job on two nodes."""
    return make_job(status="RUNNING", num_nodes=2)


@pytest.fixture
def attempt(job: Job) -> Attempt:
    """Return the job's open attempt."""
    return make_attempt(job)


@pytest.fixture
def post(attempt: Attempt) -> Callable[..., dict[str, int]]:
    """Post frames as the attempt's runner does."""
    token = attempt_token(attempt.job_id, attempt.number)
    return lambda *frames: ingest_frames(attempt.pk, token, body(*frames))


@pytest.fixture
def client(web: str, job: Job) -> Iterator[httpx.Client]:
    """Yield a client signed in with a token of a member of the job's project."""
    _, secret = make_token(make_member(job.project))
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=web, headers=headers, timeout=20) as client:
        yield client


@pytest.fixture
def follow(client: httpx.Client, job: Job) -> Callable[..., Any]:
    """Return `follow`: `with follow(after="1:2") as events` opens the job's stream."""

    @contextmanager
    def opened(last_event_id: str = "", **query: Any) -> Iterator[Events]:
        path = f"/api/v1/projects/{job.project.slug}/jobs/{job.pk}/logs/stream"
        headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
        with client.stream("GET", path, params=query, headers=headers) as response:
            assert response.status_code == 200, response.read()
            yield read_events(response.iter_bytes())

    return opened


def texts_of(event: ServerSentEvent) -> list[str]:
    """List the texts of a `line` event."""
    assert event.event == "line"
    return [line["text"] for line in json.loads(event.data)]


def next_of(events: Events, name: str) -> ServerSentEvent:
    """Return the next event called `name`."""
    return next(event for event in events if event.event == name)
