"""A gateway in a thread of the test's process, and a running job to attach to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.actions.attempts.open_gateway import open_session
from jobs.gateway.process import Gateway
from jobs.models import Attempt, GatewaySession
from jobs.permissions import Actor
from jobs.statuses import JobKind, JobStatus
from tests.factories import make_attempt, make_job, make_member, make_project
from tests.integration.gateway.ends import Head, Program


class GatewayThread:
    """A gateway with its event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.gateway: Gateway = self.run(self._start())
        self.url = f"http://127.0.0.1:{self.gateway.listeners.ports[0]}"

    async def _start(self) -> Gateway:
        gateway = Gateway()
        await gateway.start()
        return gateway

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(20)

    def look(self) -> None:
        """Look at rows now, as the process does every two seconds."""
        self.run(self.gateway.look())

    def close(self) -> None:
        self.run(self.gateway.listeners.end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@pytest.fixture
def gateway(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[GatewayThread]:
    settings.MPORTAL_GATEWAY_LISTEN = "127.0.0.1:0"
    settings.MPORTAL_GATEWAY_SOCKET = tmp_path / "gateway" / "connections"
    started = GatewayThread()
    yield started
    started.close()


@pytest.fixture
def attempt(transactional_db: None, redis_url: str) -> Attempt:
    project = make_project("rl", laptops_may_attach=True)
    job = make_job(
        project,
        submitted_by=make_member(project),
        status=JobStatus.RUNNING,
        kind=JobKind.MONARCH,
    )
    return make_attempt(job)


@pytest.fixture
def ticket(attempt: Attempt) -> Callable[[], str]:
    """Return a function that opens a session of the job's submitter, and returns its ticket."""
    actor = Actor(attempt.job.submitted_by, source="203.0.113.7")
    return lambda: open_session(actor, attempt.job)[1]


@pytest.fixture
def head(gateway: GatewayThread, attempt: Attempt) -> Iterator[Head]:
    connected = Head(gateway.url, attempt)
    yield connected
    connected.close()


@pytest.fixture
def program(gateway: GatewayThread, head: Head, ticket: Callable[[], str]) -> Iterator[Program]:
    connected = Program(gateway.url, ticket())
    yield connected
    connected.close()


def session() -> GatewaySession:
    """Return the only session."""
    return GatewaySession.objects.get()
