"""The page of the queue in every look, full and empty, and its updates without a reload."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from jobs.backends.fake.backend import FakeBackend
from jobs.lifecycle import move
from jobs.models import Job, Pool, Project, Queue, Quota, User
from jobs.statuses import JobStatus, StopReason
from tests.browser import team
from tests.browser.test_pictures import LOOKS, Camera
from tests.browser.visits import sign_in
from tests.factories import make_attempt, make_job, make_member, make_project, make_spec

LIVE = "#live-state[data-state=on]"
LONG = "sweep-lr-3e-5-clip-0.2-entropy-0.01"
pytestmark = pytest.mark.feature("P5.1")


@pytest.fixture(params=LOOKS)
def camera(request, visitors, address, faults, ada, fake) -> Camera:
    page = visitors.open(address, **LOOKS[request.param])
    sign_in(page)
    return Camera(page, request.param)


@pytest.fixture
def fake(settings, tmp_path) -> FakeBackend:
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    backend = FakeBackend(tmp_path / "fake")
    backend.set_capacity(16)
    return backend


def gpu_job(project: Project, by: User, nodes: int, queue: str, **fields: Any) -> Job:
    spec = make_spec(num_nodes=nodes, resources={"accelerators": "H100:8"})
    fields = {"spec": spec, "num_nodes": nodes, "queue_name": queue, **fields}
    job = make_job(project, submitted_by=by, **fields)
    if job.status != JobStatus.QUEUED:
        make_attempt(job)
    return job


def make_shared_machines(project: Project) -> None:
    """Create two pools, four queues, quotas of every kind, and a queue of two projects."""
    people = team.make_team(project)
    mia, moe = people["mia"], people["moe"]
    big = Pool.objects.create(name="h100", backend_name="fake", caps={"nodes": 8, "gpus:H100": 64})
    Pool.objects.create(name="spare", backend_name="local")
    train = Queue.objects.create(name="train", rank=10, pool=big)
    Queue.objects.create(name="night", rank=-10, pool=big)
    for scope in (
        {
            "project": project,
            "pool": big,
            "caps": {"gpus:H100": 48, "jobs": 6},
            "nominal": {"jobs": 2},
        },
        {"project": project, "per_person": True, "caps": {"nodes": 4}},
        {"project": project, "user": mia, "caps": {"jobs": 2}},
        {"queue": train, "caps": {"nodes": 8}},
    ):
        Quota.objects.create(**scope)
    others = make_project("evals")
    stranger = make_member(others)
    gpu_job(project, mia, 3, "train", name="grpo-math-7b", status=JobStatus.RUNNING)
    gpu_job(others, stranger, 4, "train", status=JobStatus.RUNNING)
    gpu_job(project, mia, 4, "train", name=LONG, priority=80)
    gpu_job(others, stranger, 2, "train")
    gpu_job(project, moe, 2, "night", name="replay-buffer-check")
    make_job(project, submitted_by=moe, num_nodes=40, name="world-model", held=True)
    first = make_job(project, submitted_by=moe, name="eval-all")
    after = make_job(project, submitted_by=moe, name="eval-report")
    after.dependencies.create(needs=first, needs_number=first.pk, needs_name=first.name)


def test_the_page_is_fine_for_axe_and_fits_its_width(camera, project):
    camera.at("/rl/queue", "queue-empty", LIVE)
    make_shared_machines(project)
    camera.at("/rl/queue", "queue", LIVE)
    assert camera.problems == []


def test_on_a_phone_every_number_has_its_word_and_no_table_is_cut_off(
    visitors, address, project, ada, fake
):
    page = visitors.open(address, **LOOKS["phone"])
    sign_in(page)
    make_shared_machines(project)
    page.goto("/rl/queue")
    page.locator(LIVE).wait_for()
    sticks_out = "e => e.scrollWidth > e.clientWidth"
    assert not any(each.evaluate(sticks_out) for each in page.locator(".scroll-x").all())
    word = "e => getComputedStyle(e, '::before').content"
    for cells in ("#queue-waiting", "#queue-queues"):
        for cell in page.locator(f"{cells} td[data-word]:visible").all():
            assert str(cell.get_attribute("data-word")) in cell.evaluate(word)
    first = page.locator(".turns .c-job").first.bounding_box()
    below = page.locator(".turns .c-needs").first.bounding_box()
    assert first and below and below["x"] >= first["x"]
    own = page.locator(".amounts .own").first
    assert own.inner_text() == "nominal share 2, limit 6"
    lines = "e => e.clientHeight / parseFloat(getComputedStyle(e).lineHeight)"
    assert own.evaluate(lines) < 2


def test_on_a_phone_the_page_that_is_shown_is_in_the_menu(visitors, address, project, ada):
    page = visitors.open(address, **LOOKS["phone"])
    page.set_viewport_size({"width": 320, "height": 640})
    sign_in(page)
    for place in ("usage", "members", "jobs"):
        page.goto(f"/rl/{place}")
        nav = page.locator(".nav").bounding_box()
        here = page.locator(".nav [aria-current]").bounding_box()
        assert here and nav
        assert nav["x"] <= here["x"] and here["x"] + here["width"] <= nav["x"] + nav["width"] + 1


def test_what_changes_anywhere_shows_without_a_reload(page, project, ada, fake):
    fake.set_capacity(1)
    running = make_job(make_project("evals"), status=JobStatus.RUNNING)
    make_attempt(running)
    page.goto("/rl/queue")
    page.locator(LIVE).wait_for()
    first = make_job(project, name="mine", submitted_by=ada)
    move(running, JobStatus.FAILED, reason=StopReason.USER_CODE, message="It ended.")
    expect(page.get_by_role("link", name="mine")).to_be_visible()
    move(first, JobStatus.CANCELLED, reason=StopReason.CANCELLED_BY_USER, message="Cancelled.")
    expect(page.get_by_text("The queue is empty")).to_be_visible()
