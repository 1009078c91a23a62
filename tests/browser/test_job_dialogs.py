"""The dialogs of a job's page: they say what happens to the job in its present status."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from jobs.lifecycle import move
from jobs.models import Job
from jobs.statuses import JobStatus
from tests.factories import make_job


@pytest.mark.feature("P7.1")
def test_a_dialog_tells_the_present_status_also_after_the_job_started(page, project, ada):
    job = make_job(project, submitted_by=ada, num_nodes=2)
    page.goto(f"/rl/jobs/{job.pk}")
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It has not started: it has no machines and has cost nothing.")
    dialog.get_by_role("button", name="Keep the job").click()
    move(job, JobStatus.PROVISIONING)
    move(job, JobStatus.SETTING_UP)
    move(job, JobStatus.RUNNING)
    expect(page.locator("#job-status")).to_contain_text("Running")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(dialog).to_contain_text("Its processes on 2 nodes are stopped.")
    dialog.get_by_role("button", name="Keep it running").click()
    page.get_by_role("button", name="Rerun", exact=True).click()
    expect(dialog).to_contain_text("a second job of the same specification is queued")
    dialog.get_by_role("button", name="Go back", exact=True).click()
    expect(dialog).to_be_hidden()
    assert Job.objects.count() == 1


def test_a_wrong_label_keeps_the_dialog_open_with_the_error_and_the_input(
    page, project, ada, faults
):
    job = make_job(project, name="ppo", submitted_by=ada)
    page.goto(f"/rl/jobs/{job.pk}/spec")
    page.get_by_role("button", name="Labels and note").click()
    dialog = page.get_by_role("dialog", name="Labels and note of ppo")
    labels = dialog.get_by_role("textbox", name="Labels")
    labels.fill("te am")
    dialog.get_by_role("textbox", name="Note").fill("good seed")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_text("up to 63 letters")).to_be_visible()
    expect(labels).to_be_focused()
    expect(labels).to_have_value("te am")
    expect(labels).to_have_accessible_description(re.compile("up to 63 letters"))
    expect(dialog.get_by_role("textbox", name="Note")).to_have_value("good seed")
    faults.expect("status of 422")
    labels.fill("team")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator("#job-annotations").get_by_role("link", name="team")).to_be_visible()
    expect(page.locator("#job-annotations")).to_contain_text("good seed")
    expect(page.get_by_role("tab", name="Spec")).to_have_attribute("aria-selected", "true")
