"""The first lines of a log: requested with the page, before the code that shows them is there."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from jobs.models import Attempt
from jobs.statuses import JobStatus
from tests.browser.test_live import Runner
from tests.factories import make_job

LINES = re.compile(r"/logs\?")


@pytest.fixture
def job(project, ada):
    job = make_job(project, status=JobStatus.RUNNING, submitted_by=ada)
    Runner(job).write(5, "first")
    Attempt.objects.update(ended_at="2026-01-01T00:00:00Z")
    Runner(job).write(5, "second")
    return job


@pytest.mark.feature("P3.1")
def test_the_first_lines_are_requested_before_the_code_of_the_log_is_there(page, job):
    held = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(re.compile(r"/js/log(\.\w+)?\.js$"), hold)
    with page.expect_request(LINES):
        page.goto(f"/rl/jobs/{job.pk}", wait_until="commit")
    expect(page.locator("#log-lines li")).to_have_count(0)
    held[0].continue_()
    expect(page.locator("#log-lines li")).to_have_count(10)


@pytest.mark.feature("P3.1")
@pytest.mark.parametrize(("query", "shown"), [("", 10), ("?attempt=1", 5)])
def test_the_first_lines_are_requested_once(page, job, query, shown):
    requests = []
    page.on("request", lambda each: LINES.search(each.url) and requests.append(each.url))
    page.goto(f"/rl/jobs/{job.pk}{query}")
    expect(page.locator("#log-lines li")).to_have_count(shown)
    assert len(requests) == 1, requests
