"""Live tables while changes come faster than the portal answers."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import connection
from playwright.sync_api import Page, Route, expect

from jobs.lifecycle import move
from jobs.statuses import JobStatus
from tests.factories import make_job

pytestmark = pytest.mark.feature("P7.1")
ANSWER_S, CHANGE_S, CHANGES = 0.7, 0.5, 12


def slow(route: Route) -> None:
    """Answer as a portal does that takes its time."""
    response = route.fetch()
    time.sleep(ANSWER_S)
    route.fulfill(response=response)


def change(page: Page, jobs: list[Any]) -> None:
    """Start one job after another, two a second, whatever the browser waits for meanwhile."""

    def start() -> None:
        for job in jobs:
            move(job, JobStatus.RUNNING)
            is_over.wait(CHANGE_S)
        connection.close()

    is_over = threading.Event()
    changes = threading.Thread(target=start)
    changes.start()
    while changes.is_alive():
        page.wait_for_timeout(50)


def setting_up(project: Any) -> list[Any]:
    return [make_job(project, status=JobStatus.SETTING_UP) for _ in range(CHANGES)]


def running(page: Page) -> int:
    return page.locator("#job-rows tr", has_text="Running").count()


def test_a_steady_flow_of_changes_reaches_a_table_whose_answers_are_slow(page, project, ada):
    jobs = setting_up(project)
    page.goto("/rl/jobs")
    page.locator("#live-state[data-state=on]").wait_for()
    page.route("**/jobs/live*", slow)
    change(page, jobs)
    # The changes of the last two seconds may be missing.
    assert running(page) >= CHANGES - 4
    expect(page.locator("#job-rows tr", has_text="Running")).to_have_count(CHANGES)
    page.unroute_all(behavior="wait")


def test_pages_that_fetch_their_parts_land_under_a_steady_flow_too(page, project, ada):
    jobs = setting_up(project)
    page.goto(f"/rl/jobs/{jobs[0].pk}")
    page.locator("#log-state").wait_for()
    page.goto("/rl/queue")
    page.locator("#live-state[data-state=on]").wait_for()
    page.evaluate(
        "document.addEventListener('portal:morphed', () => (window.shown ??= []).push(1))"
    )
    page.route("**/queue/live*", slow)
    change(page, jobs)
    assert page.evaluate("window.shown?.length ?? 0") >= CHANGES * CHANGE_S // (2 * ANSWER_S)
    page.unroute_all(behavior="wait")


def test_a_page_that_is_behind_says_by_how_much(page, project, ada):
    [job, *_] = setting_up(project)
    page.goto("/rl/queue")
    page.locator("#live-state[data-state=on]").wait_for()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/queue/live*", hold)
    move(job, JobStatus.RUNNING)
    behind = page.locator("#live-state[data-state=behind]")
    behind.wait_for()
    expect(behind).to_have_text("Updating, 3 s behind")
    for route in held:
        route.continue_()
    page.unroute("**/queue/live*")
    page.locator("#live-state[data-state=on]").wait_for()
