"""Stack dumps of a job in a browser: requested by a button, shown live; in every look."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.ground import clock
from jobs.models import Attempt, StackDump
from jobs.statuses import Carrier, JobStatus, StackState
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.visits import sign_in
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body, frame

ASKED, DONE, EMPTY = 311, 312, 313
TEXT = """Process 5121: python train.py --a-long-option with-a-value-that-never-ends
Python v3.11.7 (/usr/bin/python3.11)

Thread 5121 (idle): "MainThread"
    wait (threading.py:327)
    waits_for_nobody (train.py:3)
    <module> (train.py:7)"""
WHY = "py-spy may not read this process (kernel.yama.ptrace_scope is 1 here)."


def make_running(project: Any, ada: Any, number: int) -> Attempt:
    job = make_job(
        project,
        pk=number,
        name=f"stacks-{number}",
        status=JobStatus.RUNNING,
        submitted_by=ada,
        num_nodes=4,
    )
    return make_attempt(job, contacted_at=clock.now(), carrier=Carrier.PUSH)


def kept(attempt: Attempt, rank: int, state: StackState = StackState.DONE, **fields: Any) -> None:
    stack = {"pid": 5121, "command": "python train.py", "text": TEXT, "why": ""}
    unread = {"pid": 5122, "command": "python loader.py " + "x" * 200, "text": "", "why": WHY}
    processes = [stack, unread] if state == StackState.DONE else []
    fields = {"processes": processes, "asked_by": attempt.job.submitted_by, **fields}
    StackDump.objects.create(attempt=attempt, rank=rank, state=state, **fields)


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, faults, ada) -> Camera:
    page = visitors.open(address, **LOOKS[request.param])
    sign_in(page)
    return Camera(page, request.param)


@pytest.mark.timeout(400)
def test_stack_dumps_are_fine_in_every_look_requested_done_failed_or_none(
    camera, project, ada
) -> None:
    make_running(project, ada, EMPTY)
    kept(make_running(project, ada, ASKED), 1, StackState.REQUESTED)
    attempt = make_running(project, ada, DONE)
    kept(attempt, 0, StackState.FAILED, why=WHY)
    kept(attempt, 3, left_out=2)
    camera.at(f"/rl/jobs/{EMPTY}/nodes?show=stacks", "stacks-none", "#stacks-form")
    camera.at(f"/rl/jobs/{ASKED}/nodes?show=stacks", "stacks-asked", ".stack-dump")
    camera.at(f"/rl/jobs/{DONE}/nodes?show=stacks", "stacks", ".stack-dump pre")
    camera.page.locator("#job-stacks").screenshot(
        path=f".results/screenshots/{camera.look}/stacks-part.png"
    )
    assert camera.problems == []


def test_a_request_by_the_button_shows_by_itself(page, project, ada) -> None:
    attempt = make_running(project, ada, ASKED)
    page.goto(f"/rl/jobs/{ASKED}")
    page.get_by_role("tab", name="Nodes").click()
    page.get_by_role("link", name="Stacks", exact=True).click()
    page.get_by_label("Node", exact=True).fill("2")
    page.get_by_role("button", name="Dump stacks").click()
    page.get_by_text("Requested.").wait_for()
    dump = StackDump.objects.get()
    assert (dump.rank, dump.pid) == (2, None)
    token = attempt_token(attempt.job_id, attempt.number)
    stack = {"ask": dump.pk, "pid": 5121, "command": "python train.py", "text": TEXT}
    frames = [
        frame(1, "stacks", rank=2, **stack),
        frame(2, "stacks", rank=2, ask=dump.pk, done=True),
    ]
    ingest_frames(attempt.pk, token, body(*frames))
    # Within the next look, a few seconds on.
    page.get_by_text("waits_for_nobody (train.py:3)").wait_for()


def test_an_older_dump_is_a_click_away(page, project, ada) -> None:
    attempt = make_running(project, ada, DONE)
    kept(attempt, 0, StackState.FAILED, why="There is no py-spy on this node")
    kept(attempt, 3)
    page.goto(f"/rl/jobs/{DONE}/nodes?show=stacks")
    page.get_by_role("link", name="Node 0").click()
    page.get_by_text("There is no py-spy on this node").wait_for()
    assert "dump=" in page.url
    page.get_by_role("link", name="Node 3").click()
    page.get_by_text("waits_for_nobody (train.py:3)").wait_for()
