"""A log of ten million lines in a browser: links hold, all is searched, its end is live."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from jobs.models import Attempt
from jobs.statuses import JobStatus
from tests.browser.test_live import Runner, numbers
from tests.browser.test_log_links import number, targets
from tests.factories import make_job
from tests.large_log import write_large_log

LINES = 9_999_999


@pytest.fixture
def job(project, ada, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "blobs"
    return make_job(project, status=JobStatus.RUNNING, submitted_by=ada, num_nodes=2)


@pytest.mark.feature("P3.2")
@pytest.mark.timeout(300)
def test_lines_named_in_an_address_and_matches_are_found_among_ten_million(page, job):
    Runner(job).write(5, "first")
    Attempt.objects.update(ended_at="2026-01-01T00:00:00Z")
    runner = Runner(job)
    write_large_log(runner.attempt, LINES, {130: "needle 1", 6_000_000: "needle 2"})
    page.goto(f"/rl/jobs/{job.pk}#A2-L120-L140")
    expect(number(page, 120, attempt=2)).to_be_in_viewport()
    assert targets(page) == [f"2:{line}" for line in range(120, 141)]
    assert len(numbers(page)) <= 1000
    page.keyboard.press("/")
    page.keyboard.insert_text("needle")
    count = page.locator("[data-find] output")
    expect(count).to_have_text("1 of 2", timeout=60_000)
    page.keyboard.press("Enter")
    expect(page.locator("li.current .n")).to_have_text("6000000")
    expect(page.locator("li.current")).to_be_in_viewport()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Follow").click()
    expect(number(page, LINES, attempt=2)).to_be_in_viewport()
    runner.write(1, "fresh")
    expect(page.get_by_text("fresh 1 of rank 0")).to_be_in_viewport()
    expect(number(page, LINES + 1, attempt=2)).to_be_in_viewport()
    page.goto(f"/rl/jobs/{job.pk}#A2-L7654321")
    expect(number(page, 7_654_321, attempt=2)).to_be_in_viewport()
    expect(page.locator("li.target .t")).to_have_text("step 038214321 of rank 1")
