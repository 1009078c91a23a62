"""The charts of a job in a browser: brush, mark, log and back; in every look."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.models import Attempt
from jobs.statuses import JobStatus
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.visits import sign_in
from tests.factories import make_attempt, make_job
from tests.frame_bytes import T0, body, frame
from tests.sample_frames import gpu, sample

NUMBER = 501
SECONDS = 400


def make_charts(project: Any, ada: Any) -> Attempt:
    job = make_job(
        project,
        pk=NUMBER,
        name="charts",
        status=JobStatus.RUNNING,
        submitted_by=ada,
        num_nodes=3,
    )
    attempt = make_attempt(job)
    lines = [
        {
            **frame(
                second, rank=rank, text=f"step={second} loss={(9 + rank) / second:.4f} lr=1e-4"
            ),
            "t": T0 + second,
        }
        for second in range(1, SECONDS + 1)
        for rank in range(3)
    ]
    ingest_frames(attempt.pk, attempt_token(attempt.job_id, attempt.number), body(*lines))
    for second in range(0, SECONDS, 10):
        samples = [
            sample(second, rank=rank, cpu=20.0 + rank * 9, gpus=[gpu(0, 50 + rank + second % 30)])
            for rank in range(3)
        ]
        ingest_frames(attempt.pk, attempt_token(attempt.job_id, attempt.number), body(*samples))
    return attempt


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, faults, ada) -> Camera:
    page = visitors.open(address, **LOOKS[request.param])
    sign_in(page)
    return Camera(page, request.param)


@pytest.mark.timeout(400)
def test_charts_are_fine_in_every_look(camera, project, ada) -> None:
    make_charts(project, ada)
    camera.at(f"/rl/jobs/{NUMBER}/charts", "charts", "#job-charts polyline")
    camera.page.locator("#job-charts").screenshot(
        path=f".results/screenshots/{camera.look}/charts-part.png"
    )
    camera.at(f"/rl/jobs/{NUMBER}/charts?by=step", "charts-by-step", "#job-charts polyline")
    assert camera.problems == []


def test_a_brush_zooms_a_click_leads_to_the_log_and_a_line_back_to_the_charts(
    page, project, ada
) -> None:
    make_charts(project, ada)
    page.goto(f"/rl/jobs/{NUMBER}/charts")
    loss = page.get_by_role("img", name="loss of 3 nodes")
    loss.scroll_into_view_if_needed()
    box = loss.bounding_box()
    # The picture's own coordinates are 340 wide; the axis begins at 54 and ends at 334.
    at = [box["x"] + box["width"] * x / 340 for x in (54 + 70, 54 + 140)]
    middle = box["y"] + box["height"] / 2
    page.mouse.move(at[0], middle)
    page.mouse.down()
    page.mouse.move(at[1], middle)
    page.mouse.up()
    page.get_by_role("link", name="Zoom out").wait_for()
    low, high = (float(loss.get_attribute(f"data-{end}")) - T0 for end in ("low", "high"))
    assert 95 < low < 105
    assert 195 < high < 205
    page.mouse.click(at[0], middle)
    page.get_by_role("link", name="Log at").click()
    page.wait_for_url("**/log#A1-L*")
    # A quarter of the way from 100 to 200 seconds, three lines a second.
    line = int(page.url.rpartition("L")[2])
    assert 360 < line < 390
    page.get_by_role("link", name="Charts at this line").click()
    page.locator("#job-charts line.mark").first.wait_for(state="attached")
    assert "at=" in page.url
