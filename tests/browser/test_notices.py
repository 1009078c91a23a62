"""Notifications of the browser: by choice, once, and none without permission."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from jobs.statuses import JobStatus
from tests.browser.test_accessibility import LOOKS, assert_fine
from tests.browser.test_live import move
from tests.factories import make_job
from tests.waiting import eventually

# The real notification is shown, and noted; the tab is in the background.
NOTED = """
    window.noted = [];
    const Real = window.Notification;
    window.Notification = class extends Real {
        constructor(title, options) { super(title, options); noted.push(title); }
    };
    Object.defineProperty(document, "hidden", { get: () => true });
"""


@pytest.fixture
def allowed(page):
    """Open two tabs in a browser that has been given permission."""
    page.context.grant_permissions(["notifications"])
    page.context.add_init_script(NOTED)
    return page, page.context.new_page()


def noted_in(*tabs: Page) -> list[str]:
    """Return the titles of the notifications of the tabs."""
    return [title for tab in tabs for title in tab.evaluate("noted")]


@pytest.mark.feature("P7.1")
def test_a_watched_job_notifies_of_its_start_and_its_end_once_in_all_tabs(allowed, project, ada):
    job = make_job(project, name="ppo", submitted_by=ada)
    make_job(project, name="other", submitted_by=ada)
    for tab in allowed:
        tab.goto(f"/rl/jobs/{job.pk}")
        tab.locator("#log-state[data-state=live]").wait_for()
    first, second = allowed
    first.get_by_role("button", name="Notify me").click()
    expect(first.get_by_role("button", name="Notify me")).to_have_attribute("aria-pressed", "true")
    for status in (JobStatus.PROVISIONING, JobStatus.SETTING_UP, JobStatus.RUNNING):
        move(job, status)
    assert eventually(lambda: len(noted_in(*allowed)) == 1)
    move(job, JobStatus.SUCCEEDED)
    assert eventually(lambda: len(noted_in(*allowed)) == 2)
    assert noted_in(*allowed) == [f"ppo #{job.pk} has started", f"ppo #{job.pk} has ended"]
    second.goto("/settings/notifications")
    expect(second.get_by_text("None. Choose")).to_be_visible()


def test_the_own_jobs_notify_from_any_page_but_not_of_what_was_before(allowed, project, ada):
    old = make_job(project, name="old", status=JobStatus.RUNNING, submitted_by=ada)
    tab = allowed[0]
    tab.goto("/settings/notifications")
    with tab.expect_response(re.compile("/settings/notices")):
        tab.get_by_label("Notify me when one of my jobs starts or ends").check()
    tab.goto("/rl/jobs")
    tab.locator("#live-state[data-state=on]").wait_for()
    move(old, JobStatus.SUCCEEDED)
    assert eventually(lambda: noted_in(tab))
    assert noted_in(tab) == [f"old #{old.pk} has ended"]


def test_without_permission_the_page_says_so_and_nothing_is_chosen(page, faults, project, ada):
    job = make_job(project, submitted_by=ada)
    page.goto(f"/rl/jobs/{job.pk}")
    bell = page.get_by_role("button", name="Notify me")
    bell.click()
    expect(page.get_by_text("This browser blocks notifications")).to_be_visible()
    expect(bell).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_on_the_page_of_notifications(page, look):
    width, scheme = LOOKS[look]
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.goto("/settings/notifications")
    assert_fine(page)
