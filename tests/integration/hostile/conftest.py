"""A web server inside the test process, and hostile clients of it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from jobs.models import Attempt, Project
from tests.factories import make_attempt, make_job, make_project
from tests.serving import serving


@pytest.fixture
def web(transactional_db: None, redis_client: object) -> Iterator[str]:
    """Yield the address of a server like the portal's own, on the test's database and Redis."""
    with serving() as address:
        yield address


@pytest.fixture
def connect(web: str) -> Iterator[Callable[[], socket.socket]]:
    """Open a bare connection; all are closed at the end."""
    opened: list[socket.socket] = []

    def call() -> socket.socket:
        opened.append(socket.create_connection(("127.0.0.1", urlsplit(web).port), timeout=20))
        return opened[-1]

    yield call
    for each in opened:
        each.close()


@pytest.fixture
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start nothing in the background."""
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)


@pytest.fixture
def project(db: None) -> Project:
    """Create the project that owns these jobs."""
    return make_project("rl")


@pytest.fixture
def attempt(project: Project, no_broker: None) -> Attempt:
    """Create the attempt of a job on two nodes."""
    return make_attempt(make_job(project, status="RUNNING", num_nodes=2))


@pytest.fixture
def neighbour(project: Project) -> Attempt:
    """Create the attempt of another job of the same project."""
    return make_attempt(make_job(project, status="RUNNING", num_nodes=2))
