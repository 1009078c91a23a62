"""Cancel, hold, release, priority, rerun, delete, as the buttons of a real job."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect


def status(page):
    return page.locator("#job-status")


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


@pytest.fixture
def page(people):
    return people("mia")


def test_cancelling_asks_first_and_then_ends_the_job(page, living):
    job = living.count("mia")
    living.wait(job.id, "RUNNING")
    page.goto(f"/rl/jobs/{job.id}")
    press(page, "Cancel")
    press(page, "Keep it running")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert living.job(job.id)["status"] == "RUNNING"
    press(page, "Cancel")
    press(page, "Cancel the job")
    expect(status(page)).to_contain_text("Cancelled")
    expect(page.locator("#job-ending")).to_contain_text("mia")
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_have_count(0)


def test_a_rerun_is_a_new_job_that_names_the_first(page, living):
    first = living.submit("mia", "name: again\nrun: echo again\n")
    living.wait(first, "SUCCEEDED")
    page.goto(f"/rl/jobs/{first}")
    press(page, "Rerun")
    expect(page.get_by_text("was rerun as job")).to_be_visible()
    assert not page.url.endswith(f"/{first}")
    expect(page.get_by_role("link", name=f"#{first}")).to_be_visible()
    expect(status(page)).to_contain_text("Succeeded")


def test_edit_and_submit_opens_the_editor_with_the_jobs_own_text(page, living):
    source = "name: edited\nrun: echo edited\n"
    job = living.submit("mia", source)
    living.wait(job, "SUCCEEDED")
    page.goto(f"/rl/jobs/{job}")
    page.get_by_role("link", name="Edit and submit").click()
    expect(page.get_by_label("Job specification, YAML")).to_have_value(source)


def test_a_waiting_job_can_be_held_and_released(page, living):
    full = living.submit("ada", "name: full\nnum_nodes: 16\nrun: sleep 300\n")
    living.wait(full, "RUNNING")
    job = living.submit("mia", "name: waiting\nrun: echo ran\n")
    page.goto(f"/rl/jobs/{job}")
    press(page, "Hold")
    expect(page.locator("#job-ending")).to_contain_text("Held")
    with living.client("ada") as client:
        client.post(f"/api/v1/projects/rl/jobs/{full}/actions/cancel")
    living.wait(full, "CANCELLED")
    expect(status(page)).to_contain_text("Queued")
    press(page, "Release")
    expect(status(page)).to_contain_text("Succeeded")


def test_a_waiting_job_that_gets_a_higher_priority_overtakes(page, living):
    full = living.submit("ada", "name: full\nnum_nodes: 16\nrun: sleep 300\n")
    living.wait(full, "RUNNING")
    first = living.submit("mia", "name: first\nnum_nodes: 16\nrun: echo ran\n")
    second = living.submit("mia", "name: second\nnum_nodes: 16\nrun: sleep 300\n")
    page.goto(f"/rl/jobs/{second}")
    press(page, "Priority")
    page.get_by_role("spinbutton", name="Priority").fill("60")
    press(page, "Change priority")
    expect(page.get_by_text("default, priority 60")).to_be_visible()
    with living.client("ada") as client:
        client.post(f"/api/v1/projects/rl/jobs/{full}/actions/cancel")
    living.wait(second, "RUNNING")
    assert living.job(first)["status"] == "QUEUED"
    page.reload()
    expect(page.get_by_role("button", name="Priority", exact=True)).to_have_count(0)
    press(page, "Cancel")
    press(page, "Cancel the job")
    living.wait(first, "SUCCEEDED")


def test_deleting_asks_first_and_leads_back_to_a_table_without_the_job(people, living, faults):
    page = people("max")
    job = living.submit("mia", "name: unwanted\nrun: echo\n")
    living.wait(job, "SUCCEEDED")
    page.goto(f"/rl/jobs/{job}")
    press(page, "Delete")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    press(page, "Delete")
    press(page, "Delete the job")
    page.wait_for_url("**/rl/jobs")
    expect(page.get_by_text("(unwanted) was deleted")).to_be_visible()
    expect(page.locator(f"#job-{job}")).to_have_count(0)
    # The page may have learned that its job was deleted before it was left.
    faults.forgive(f"/rl/jobs/{job}/live")
    page.goto(f"/rl/jobs/{job}")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    faults.expect("404")


def test_a_failed_job_shows_what_happened_the_evidence_and_its_line_of_the_log(page, living):
    broken = 'name: broken\nrun: |\n  python -c "raise ValueError(12345)"\n  exit 7\n'
    job = living.submit("mia", broken)
    page.goto(f"/rl/jobs/{job}")
    expect(status(page)).to_contain_text("Failed")
    ending = page.locator("#job-ending")
    expect(ending.locator(".said")).to_contain_text("7")
    expect(ending.get_by_role("link", name=re.compile(r"Line \d+ of the log"))).to_be_visible()
    expect(page.locator("#job-head")).to_contain_text(re.compile(r"Exit code\s*7"))
    expect(page.locator("#stage-run")).to_have_class(re.compile("failed"))
    expect(page.locator("#log-lines")).to_contain_text("ValueError: 12345")
    expect(ending.locator("pre")).to_contain_text("ValueError: 12345")
    page.goto("/rl/jobs?status=FAILED")
    expect(page.locator(f"#job-{job} .why")).to_contain_text("7")
