"""The meshes of a job in a browser: failures, grid and tree; live, and in every look."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.ground import clock
from jobs.models import Attempt, MeshTree
from jobs.statuses import JobKind, JobStatus
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.visits import sign_in
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body, frame
from tests.mesh_frames import actor, dead, host, proc, tree

SICK, MANY, SILENT = 301, 302, 303
TRACE = 'Traceback (most recent call last):\n  File "train.py", line 9, in step\nValueError: bad 7'


def make_mesh(project: Any, ada: Any, number: int, *hosts: dict[str, Any]) -> Attempt:
    job = make_job(
        project,
        pk=number,
        name=f"mesh-{number}",
        kind=JobKind.MONARCH,
        status=JobStatus.RUNNING,
        submitted_by=ada,
        num_nodes=max(2, len(hosts)),
    )
    attempt = make_attempt(job)
    if hosts:
        report_hosts(attempt, frame(1, rank=1, text="loss 0.25 " + "x" * 200), *hosts)
    return attempt


def report_hosts(attempt: Attempt, line: dict[str, Any], *hosts: dict[str, Any]) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    mesh_frame = {**tree(0, *hosts), "t": clock.now().timestamp()}
    ingest_frames(attempt.pk, token, body(line, mesh_frame))


def sick() -> list[dict[str, Any]]:
    failed = actor("step<a7>", state="failed", doing="failed", why=TRACE)
    return [
        host(0, procs=[proc(), proc("p<2>", state="poisoned", why="1 failed", actors=[failed])]),
        host(1, procs=[dead("trainers_" + "with_a_long_name_" * 8 + "<p1>"), proc("p<3>")]),
        host(None, id="driver<h9>", procs=[proc("client<c>", actors=[])]),
    ]


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, faults, ada) -> Camera:
    page = visitors.open(address, **LOOKS[request.param])
    sign_in(page)
    return Camera(page, request.param)


@pytest.mark.timeout(400)
def test_meshes_are_fine_in_every_look_sick_many_or_silent(camera, project, ada) -> None:
    make_mesh(project, ada, SICK, *sick())
    many = [host(rank, procs=[proc(f"p<{n}>") for n in range(8)]) for rank in range(60)]
    make_mesh(project, ada, MANY, *many)
    make_mesh(project, ada, SILENT, *sick())
    MeshTree.objects.filter(attempt__job=SILENT).update(at="2026-01-01T00:00:00Z")
    camera.at(f"/rl/jobs/{SICK}/nodes?show=mesh", "mesh", ".mesh-tree details")
    camera.page.locator("#job-mesh").screenshot(
        path=f".results/screenshots/{camera.look}/mesh-part.png"
    )
    camera.at(f"/rl/jobs/{MANY}/nodes?show=mesh", "mesh-many", ".mesh-cells li")
    camera.at(f"/rl/jobs/{SILENT}/nodes?show=mesh", "mesh-silent", ".mesh-unknown")
    assert camera.problems == []


def test_a_loss_shows_by_itself_and_what_is_open_stays_open(page, project, ada) -> None:
    attempt = make_mesh(project, ada, SICK, host(0), host(1))
    page.goto(f"/rl/jobs/{SICK}")
    page.get_by_role("tab", name="Nodes").click()
    page.get_by_role("link", name="Mesh", exact=True).click()
    page.get_by_text("2 hosts, 2 procs, 2 actors: all well").wait_for()
    # Trees that follow each other too soon are not stored.
    MeshTree.objects.update(at=clock.now() - timedelta(seconds=5))
    first = page.locator(".mesh-tree > details").first
    part = first.locator("> details").first
    part.locator("> summary").click()
    part.locator("> details > summary").wait_for()
    # What the page opened by itself and the reader has closed stays closed.
    second = page.locator(".mesh-tree > details").last
    second.locator("> summary").click()
    name = part.get_attribute("id")
    more = host(0, procs=[proc("earlier<p0>"), proc()])
    report_hosts(attempt, frame(2, rank=1, text="the final output"), more, host(1, procs=[dead()]))
    # Within the next look, a few seconds on.
    page.get_by_role("heading", name="1 failure").wait_for()
    page.locator(".mesh-changes").get_by_text("the final output").wait_for()
    assert page.locator(f"#{name}").get_attribute("open") is not None
    assert first.locator("> details").first.get_attribute("open") is None
    assert second.get_attribute("open") is None
