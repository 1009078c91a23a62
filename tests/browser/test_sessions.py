"""Attached programs on the page of a job, in every look; a session ends by a button."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import GatewaySession, Worker
from jobs.statuses import GatewayState, JobKind, JobStatus, WorkerStatus
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.visits import sign_in
from tests.factories import make_attempt, make_job

NUMBER = 611


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, faults, ada) -> Camera:
    page = visitors.open(address, **LOOKS[request.param])
    sign_in(page)
    return Camera(page, request.param)


def make_attached(project: Any, ada: Any) -> None:
    job = make_job(
        project,
        pk=NUMBER,
        name="workers-for-laptops",
        status=JobStatus.RUNNING,
        kind=JobKind.MONARCH,
        submitted_by=ada,
    )
    attempt = make_attempt(job)
    Worker.objects.create(
        attempt=attempt, rank=0, status=WorkerStatus.RUNNING, address="tls://10.0.0.5:26600"
    )
    for number, state in enumerate((GatewayState.OPEN, GatewayState.AWAY, GatewayState.OPENING)):
        GatewaySession.objects.create(
            attempt=attempt,
            user=ada,
            source="2001:db8:85a3::8a2e:370:7334",
            state=state,
            secret_digest=str(number),
            bytes_up=number * 123_456_789,
        )


@pytest.mark.timeout(400)
def test_attached_programs_are_fine_in_every_look_and_a_button_ends_one(
    camera, project, ada
) -> None:
    make_attached(project, ada)
    page = camera.page
    camera.at(f"/rl/jobs/{NUMBER}/nodes", "sessions", "#job-sessions")
    assert camera.problems == []
    page.locator("#job-sessions form button").first.click()
    page.get_by_role("button", name="End the session").click()
    page.wait_for_function("document.querySelectorAll('#job-sessions tbody tr').length === 2")
    assert GatewaySession.objects.current().count() == 2
