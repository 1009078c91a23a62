"""A hostile job holds every lock of the portal's that it can get, while others start and stop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests import lock_holder
from tests.faults import victims
from tests.faults.ground import JOBS
from tests.portal_process import PortalProcess
from tests.waiting import eventually

pytestmark = pytest.mark.root("jobs get a user of their own")
OTHERS = JOBS.replace("default", "others")
# Of one step: a launch or an end, after a worker's death too.
BOUND_S = 40


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalProcess]:
    """Start a portal with a second project, and a job in the first that locks what it can."""
    portal = PortalProcess()
    try:
        portal.start()
        with portal.client() as client:
            client.post("/api/v1/projects", json={"slug": "others"}).raise_for_status()
        hostile = submit(portal, JOBS, lock_holder.RUN)
        assert eventually(lambda: has_said(portal, hostile), timeout_s=BOUND_S), portal.logs()
        yield portal
    finally:
        portal.close()


def submit(portal: PortalProcess, where: str, run: str) -> str:
    """Submit a job and return its address."""
    with portal.client() as client:
        answer = client.post(where, json={"spec": {"run": run}}).raise_for_status()
        return f"{where}/{answer.json()['id']}"


def has_said(portal: PortalProcess, job: str) -> bool:
    with portal.client() as client:
        lines = client.get(f"{job}/logs").raise_for_status().json()["results"]
    return any(line["text"] == lock_holder.READY for line in lines)


def wait_for(portal: PortalProcess, job: str, status: str) -> None:
    seen: list[Any] = []

    def is_there() -> bool:
        with portal.client() as client:
            seen.append(client.get(job).raise_for_status().json()["status"])
        return bool(seen[-1] == status)

    assert eventually(is_there, timeout_s=BOUND_S), (seen[-1], portal.logs())


def cancel(portal: PortalProcess, job: str) -> None:
    with portal.client() as client:
        client.post(f"{job}/actions/cancel").raise_for_status()


def test_jobs_of_other_projects_start_and_end_beside_it(portal: PortalProcess) -> None:
    wait_for(portal, submit(portal, OTHERS, "true"), "SUCCEEDED")


def test_jobs_of_other_projects_are_cancelled_beside_it(portal: PortalProcess) -> None:
    job = submit(portal, OTHERS, "sleep 600")
    wait_for(portal, job, "RUNNING")
    cancel(portal, job)
    wait_for(portal, job, "CANCELLED")


def test_a_worker_that_is_killed_and_comes_back_goes_on_beside_it(portal: PortalProcess) -> None:
    job = submit(portal, OTHERS, "sleep 600")
    victims.kill(victims.part_of(portal, "worker"))
    wait_for(portal, job, "RUNNING")
    cancel(portal, job)
    victims.kill(victims.part_of(portal, "worker"))
    wait_for(portal, job, "CANCELLED")


def test_it_can_be_cancelled_itself(portal: PortalProcess) -> None:
    with portal.client() as client:
        [hostile] = client.get(JOBS).raise_for_status().json()["results"]
    cancel(portal, f"{JOBS}/{hostile['id']}")
    wait_for(portal, f"{JOBS}/{hostile['id']}", "CANCELLED")
