"""Jobs selected in the table, by mouse and by keyboard, and the actions on all of them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from jobs.actions.jobs.cancel import cancel_job
from jobs.models import Job
from jobs.permissions import Actor
from jobs.statuses import JobStatus
from tests.browser.test_keyboard import tab_to
from tests.factories import make_job


@pytest.fixture
def queued(project, ada):
    return [make_job(project, name=f"job-{n}", submitted_by=ada) for n in range(6)]


def box(page, job):
    return page.get_by_label(f"Select job {job.pk}", exact=True)


def count_is(page, text):
    expect(page.locator("[data-bulk-count]")).to_have_text(text)


def test_a_range_of_jobs_is_selected_survives_a_change_and_is_cancelled(page, project, ada, queued):
    page.goto("/rl/jobs")
    page.locator("#live-state[data-state=on]").wait_for()
    expect(page.locator("#bulk-form")).to_be_hidden()
    box(page, queued[4]).check()
    box(page, queued[1]).click(modifiers=["Shift"])
    count_is(page, "4 jobs selected")
    cancel_job(Actor(ada), queued[1])
    expect(page.locator(f"#job-{queued[1].pk}")).to_contain_text("Cancelled")
    count_is(page, "4 jobs selected")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_role("heading", name="Cancel 3 jobs?")).to_be_visible()
    page.get_by_role("button", name="Cancel 3 jobs").click()
    expect(page.get_by_role("heading", name="3 jobs cancelled")).to_be_visible()
    assert Job.objects.filter(status=JobStatus.CANCELLED).count() == 4
    page.get_by_role("link", name="Back to the jobs").click()
    page.wait_for_url("**/rl/jobs")


def test_jobs_are_held_and_released_again_with_the_keyboard_alone(page, queued):
    page.goto("/rl/jobs")
    page.locator("#live-state[data-state=on]").wait_for()
    tab_to(page, "Select all jobs of this page")
    page.keyboard.press("Space")
    count_is(page, "6 jobs selected")
    tab_to(page, f"Select job {queued[5].pk}")
    page.keyboard.press("Space")
    count_is(page, "5 jobs selected")
    tab_to(page, "Hold")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="5 jobs held")).to_be_visible()
    assert Job.objects.filter(held=True).count() == 5
    tab_to(page, "Undo")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="5 jobs released")).to_be_visible()
    assert not Job.objects.filter(held=True).exists()


def test_a_click_on_a_row_opens_its_job_and_one_on_its_box_does_not(page, queued):
    page.goto("/rl/jobs")
    box(page, queued[2]).click()
    count_is(page, "1 job selected")
    page.locator(f"#job-{queued[2].pk} .c-age").click()
    page.wait_for_url(f"**/rl/jobs/{queued[2].pk}")
