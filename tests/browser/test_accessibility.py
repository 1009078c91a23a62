"""Every page in both themes and at phone width: axe finds nothing, nothing sticks out."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone

from jobs.models import AttemptStage, Worker
from jobs.statuses import JobStatus, WorkerStatus
from tests.browser.editors import CodeEditor
from tests.factories import make_attempt, make_job

# What tests/browser/test_pictures.py shows of ordinary jobs, here with the extraordinary.
PAGES = [
    "/rl/jobs",
    "/rl/jobs/{job}",
    "/rl/jobs/{job}/nodes",
    "/rl/jobs/{job}/events",
    "/rl/jobs/new",
    "/rl/templates",
    "/rl/templates/torchrun",
    "/rl/new-template?template=torchrun",
]
LOOKS = {"light": (1280, "light"), "dark": (1280, "dark"), "phone": (390, "light")}


@pytest.fixture
def job(project, ada):
    """Create a job with content for every part of its page, among jobs of every status."""
    for status in JobStatus:
        make_job(project, status=status, submitted_by=ada)
    job = make_job(
        project,
        name="a-job-with-a-name-that-somebody-generated-from-all-its-parameters-lr-3e-4",
        status=JobStatus.FAILED,
        submitted_by=ada,
        num_nodes=3,
        message="The driver ended with exit code 7.",
        hint="Look at the last lines of rank 0.",
        spec_source="name: hello\nrun: echo hello\n",
        started_at=timezone.now(),
    )
    attempt = make_attempt(job, ended_at=timezone.now())
    AttemptStage.objects.create(attempt=attempt, name="run", started_at=timezone.now())
    for rank, status in enumerate(WorkerStatus):
        Worker.objects.create(attempt=attempt, rank=rank, status=status, address="10.0.0.1:22222")
    return job


def assert_fine(page):
    page.wait_for_load_state()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    too_wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(too_wide) <= 0


@pytest.mark.feature("P7.1")
@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_and_nothing_sticks_out(page, job, look):
    width, scheme = LOOKS[look]
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    for path in PAGES:
        page.goto(path.format(job=job.pk))
        assert_fine(page)
        if page.locator("#editor").count():
            CodeEditor(page)
            assert_fine(page)


def test_the_page_of_the_api_loads_within_the_content_security_policy(page):
    page.goto("/api/v1/docs")
    page.locator(".opblock").first.wait_for()
    page.locator(".opblock-summary-control").first.click()
    page.get_by_role("button", name="Try it out").wait_for()


def test_the_cancel_dialog_is_fine_and_gives_the_focus_back(page, project, ada):
    page.goto(f"/rl/jobs/{make_job(project, submitted_by=ada).pk}")
    page.get_by_role("button", name="Cancel", exact=True).click()
    assert page.get_by_role("dialog").is_visible()
    assert_fine(page)
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "cancel-button"
