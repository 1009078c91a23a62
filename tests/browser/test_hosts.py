"""The hosts of a job in a browser: tiles, the grid of many, charts; live, and in every look."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.models import Attempt, HostMetrics, Worker
from jobs.statuses import JobStatus, WorkerStatus
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.visits import sign_in
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body
from tests.sample_frames import gpu, sample, tell_of_hosts

FEW, MANY, QUIET, ENDED = 201, 202, 203, 204


def make_hosts(project: Any, ada: Any, number: int, nodes: int, **history: int) -> Attempt:
    job = make_job(
        project,
        pk=number,
        name=f"hosts-{nodes}",
        status=JobStatus.RUNNING,
        submitted_by=ada,
        num_nodes=nodes,
    )
    attempt = make_attempt(job)
    Worker.objects.bulk_create(
        Worker(attempt=attempt, rank=rank, mesh="trainers", status=WorkerStatus.RUNNING)
        for rank in range(nodes)
    )
    if history:
        tell_of_hosts(attempt, nodes, **history)
    return attempt


def report_metrics(attempt: Attempt, at: float, **fields: Any) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    ingest_frames(attempt.pk, token, body(sample(at, **fields)))


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, faults, ada) -> Camera:
    page = visitors.open(address, **LOOKS[request.param])
    sign_in(page)
    return Camera(page, request.param)


@pytest.mark.feature("S3.6")
@pytest.mark.timeout(400)
def test_workers_of_a_thousand_hosts_are_fine_in_every_look(camera, project, ada) -> None:
    attempt = make_hosts(project, ada, ENDED, 1000)
    workers = Worker.objects.filter(attempt=attempt)
    workers.update(status=WorkerStatus.EXITED, exit_code=0, address="10.0.0.7:22222", python="3.11")
    workers.filter(rank=7).update(exit_code=3, detail="python3 train.py returned exit code 3.")
    lost = {"status": WorkerStatus.LOST, "exit_code": None, "detail": "It fell silent."}
    workers.filter(rank__in=(13, 500, 999)).update(**lost)
    camera.at(f"/rl/jobs/{ENDED}/nodes", "workers-many", "#worker-999")
    camera.page.get_by_role("link", name="900–999").click()
    camera.page.locator("#worker-900").wait_for()
    camera.take("workers-last-hundred")
    assert camera.problems == []


@pytest.mark.timeout(400)
def test_hosts_are_fine_in_every_look_few_or_a_thousand(camera, project, ada) -> None:
    make_hosts(project, ada, FEW, 3, gpus=4, points=400)
    make_hosts(project, ada, MANY, 1000, gpus=8, points=3)
    make_hosts(project, ada, QUIET, 2)
    HostMetrics.objects.filter(attempt__job=FEW, rank=2).update(at="2026-01-01T00:00:00Z")
    HostMetrics.objects.filter(attempt__job=MANY, rank__in=(30, 31)).update(
        at="2026-01-01T00:00:00Z"
    )
    camera.at(f"/rl/jobs/{FEW}/nodes?show=metrics", "hosts", "#host-charts polyline")
    camera.page.locator("#host-charts").scroll_into_view_if_needed()
    camera.page.locator("#host-charts").screenshot(
        path=f".results/screenshots/{camera.look}/host-charts.png"
    )
    camera.at(f"/rl/jobs/{MANY}/nodes?show=metrics&rank=42", "hosts-many", ".heat a")
    camera.page.locator("#job-hosts").screenshot(
        path=f".results/screenshots/{camera.look}/hosts-grid.png"
    )
    camera.at(f"/rl/jobs/{QUIET}/nodes?show=metrics", "hosts-quiet", ".host")
    assert camera.problems == []


def test_samples_of_hosts_arrive_by_themselves_and_another_host_is_a_click_away(
    page, project, ada
) -> None:
    attempt = make_hosts(project, ada, FEW, 2)
    page.goto(f"/rl/jobs/{FEW}")
    page.get_by_role("tab", name="Nodes").click()
    page.get_by_role("link", name="Metrics", exact=True).click()
    page.get_by_text("No report from this host yet.").wait_for()
    report_metrics(attempt, 0, cpu=12.0, gpus=[gpu(0, 55)])
    report_metrics(attempt, 0, rank=1, cpu=88.0)
    # Within the next look, a few seconds on.
    page.locator("#host-0").get_by_text("55 %").wait_for()
    page.get_by_role("heading", name="Node 0").wait_for()
    page.locator("#host-1").get_by_role("link", name="Node 1").click()
    page.get_by_role("heading", name="Node 1").wait_for()
    assert page.url.endswith(f"/rl/jobs/{FEW}/nodes?show=metrics&rank=1")
    report_metrics(attempt, 10, rank=1, cpu=33.0)
    page.get_by_role("img", name="Processor. CPU: last 33 %, mean").wait_for()
    page.reload()
    page.get_by_role("img", name="Processor. CPU: last 33 %, mean").wait_for()
