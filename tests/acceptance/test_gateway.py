"""Programs attached to a real job's workers, while parts of the portal die and come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_jobs import JOBS, newest
from tests.integration.gateway.ends import Program, connect_again
from tests.portal_process import PortalProcess
from tests.waiting import eventually

pytestmark = [pytest.mark.monarch, pytest.mark.timeout(400), pytest.mark.feature("S1.1")]
JOB = "{name: workers, portal: {gateway: true, meshes: {trainers: 1}}}"


@pytest.fixture(scope="module")
def shared() -> Iterator[PortalProcess]:
    """Yield a portal with a running job whose workers wait for laptops."""
    portal = PortalProcess()
    try:
        portal.start()
        file = Path(portal.root, "job.yaml")
        file.write_text(JOB)
        submitted = portal.mportal("submit", "-f", str(file))
        assert submitted.returncode == 0, submitted.stderr
        is_running = lambda: newest(portal, "workers")["status"] == "RUNNING"  # noqa: E731
        assert eventually(is_running, timeout_s=180), portal.logs()
        yield portal
    finally:
        portal.close()


def sessions(portal: PortalProcess) -> str:
    return f"{JOBS}/{newest(portal, 'workers')['id']}/gateway-sessions"


@pytest.fixture
def program(shared: PortalProcess) -> Iterator[Program]:
    with shared.client() as client:
        answer = client.post(sessions(shared))
        assert answer.status_code == 201, answer.text
    program = Program(shared.url, answer.json()["ticket"])
    assert program.read("mesh")["workers"]
    yield program
    with shared.client() as client:
        client.delete(f"{sessions(shared)}/{answer.json()['id']}")


def test_a_killed_gateway_is_reconnected_to(shared: PortalProcess, program: Program) -> None:
    assert program.reaches_worker(1)
    shared.kill("gateway")
    assert program.is_closed()
    again = connect_again(shared.url, program.secret)
    assert again.welcome["session"] == program.welcome["session"]
    assert again.reaches_worker(2)


@pytest.mark.parametrize("part", ["web", "postgres", "redis", "worker"])
def test_streams_go_on_while_another_part_dies(
    shared: PortalProcess, program: Program, part: str
) -> None:
    before = shared.pids()[part]
    shared.kill(part)
    assert program.reaches_worker(1)
    assert eventually(lambda: shared.pids().get(part, before) != before, timeout_s=60)
    shared.wait_until_ready(60)
    assert program.reaches_worker(2)
    assert state_of(shared, program) == "open"


def test_a_session_outlives_a_restart_of_the_whole_portal(
    shared: PortalProcess, program: Program
) -> None:
    shared.kill()
    assert program.is_closed()
    shared.start()
    assert connect_again(shared.url, program.secret).reaches_worker(1)


def state_of(portal: PortalProcess, program: Program) -> str:
    with portal.client() as client:
        rows: list[dict[str, Any]] = client.get(sessions(portal)).json()["results"]
    return next(row["state"] for row in rows if row["id"] == program.welcome["session"])


def test_a_session_that_a_user_ends_loses_its_streams(
    shared: PortalProcess, program: Program
) -> None:
    with shared.client() as client:
        client.delete(f"{sessions(shared)}/{program.welcome['session']}")
    assert program.read("close")["detail"].startswith("Ended by")
    assert program.is_closed()
