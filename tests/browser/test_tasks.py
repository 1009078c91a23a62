"""The tasks of a job in a browser: in every look, live, and with their lines in the log."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.ground import clock
from jobs.models import Attempt
from jobs.statuses import JobStatus
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.visits import sign_in
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body, frame
from tests.task_frames import actor, context, count, failure, host, report

JOB = 341


def make_sweep(project: Any, ada: Any) -> Attempt:
    job = make_job(
        project, pk=JOB, name="sweep", status=JobStatus.RUNNING, submitted_by=ada, num_nodes=2
    )
    return make_attempt(job)


def tell(attempt: Attempt, *contexts: dict[str, Any]) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    now = {**report(0, *contexts), "t": clock.now().timestamp()}
    ingest_frames(attempt.pk, token, body(now))


def sweep() -> dict[str, Any]:
    long = "fit_" + "a_model_with_a_long_name_" * 3
    return context(
        tasks=[
            count("train", running=12, pending=3480, finished=1_204_566),
            count(long),
            count(""),
        ],
        actors=[
            actor("parameters"),
            actor("", state="pending", host="", pid=None, calls=0),
            actor(
                "steps", state="dead", why="The process of steps on node-1 was killed by SIGKILL."
            ),
        ],
        hosts=[host(), host("node-2", bytes=12_345, spilled=1 << 33), host("driver", limit=None)],
        failures=[failure(), failure(long, at="2023-11-14T22:13:00Z")],
    )


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, faults, ada) -> Camera:
    page = visitors.open(address, **LOOKS[request.param])
    sign_in(page)
    return Camera(page, request.param)


@pytest.mark.timeout(400)
def test_tasks_are_fine_in_every_look(camera, project, ada) -> None:
    tell(
        make_sweep(project, ada),
        sweep(),
        context("72-1", is_open=False, actors=[], machine="ada-laptop"),
    )
    camera.at(f"/rl/jobs/{JOB}/nodes?show=tasks", "tasks", ".task-context details")
    camera.page.locator("#job-tasks").screenshot(
        path=f".results/screenshots/{camera.look}/tasks-part.png"
    )
    assert camera.problems == []


def test_the_tasks_appear_by_themselves_and_lead_to_their_lines(page, project, ada) -> None:
    attempt = make_sweep(project, ada)
    token = attempt_token(attempt.job_id, attempt.number)
    texts = ["begins", "(train, pid 71) loss 0.25", "(other, pid 72) loss 0.5"]
    frames = [frame(seq, text=text) for seq, text in enumerate(texts, 1)]
    ingest_frames(attempt.pk, token, body(*frames))
    page.goto(f"/rl/jobs/{JOB}/nodes")
    expect(page.get_by_role("link", name="Grid", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Tasks", exact=True)).to_have_count(0)
    tell(attempt, context(tasks=[count("train")], actors=[], failures=[]))
    page.get_by_role("link", name="Tasks", exact=True).click()
    page.get_by_role("link", name="train", exact=True).click()
    expect(page).to_have_url(f"{page.url.split('/rl/')[0]}/rl/jobs/{JOB}/log?find=%28train%2C")
    expect(page.get_by_text("1 of 1")).to_be_visible()
