"""The view that people of each role have of a job, and the refusals when they try more."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import Complaints

BUTTONS = ["Cancel", "Rerun", "Delete"]


@pytest.fixture
def job(living):
    """Start Moe's job and wait until it runs."""
    job = living.count("moe")
    living.wait(job.id, "RUNNING")
    return job.id


def buttons(page: Page) -> list[str]:
    page.locator("#log-state[data-state=live]").wait_for()
    return [name for name in BUTTONS if page.get_by_role("button", name=name, exact=True).count()]


def post(page: Page, path: str, **fields: str) -> int:
    """Post a form that the page does not have, and return the status of the answer."""
    script = """async ([path, fields]) => {
      const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
      const body = new URLSearchParams({ csrfmiddlewaretoken: token, ...fields });
      return (await fetch(path, { method: "POST", body, redirect: "manual" })).status;
    }"""
    return page.evaluate(script, [path, fields])


def forgive_refusals(faults: Complaints, count: int) -> None:
    refused = [one for one in faults if "403" in one or "404" in one]
    assert len(refused) == count, list(faults)
    for one in refused:
        faults.remove(one)


def test_a_viewer_sees_no_button_and_is_refused_when_posting(people, living, job, faults):
    page = people("vera")
    page.goto("/rl/jobs")
    expect(page.get_by_role("link", name="Submit a job")).to_have_count(0)
    page.goto(f"/rl/jobs/{job}")
    assert buttons(page) == []
    expect(page.get_by_role("link", name="Edit and submit")).to_have_count(0)
    tries = ["cancel", "rerun", "delete", "hold", "release", "prioritize"]
    assert [post(page, f"/rl/jobs/{job}/{verb}") for verb in tries] == [403] * len(tries)
    page.goto("/rl/jobs/new")
    expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
    expect(page.get_by_text("this takes the role member")).to_be_visible()
    forgive_refusals(faults, len(tries) + 1)
    assert living.job(job)["status"] == "RUNNING"


def test_a_member_stops_their_own_job_and_no_other(people, living, job, faults):
    page = people("mia")
    page.goto(f"/rl/jobs/{job}")
    assert buttons(page) == ["Rerun"]  # as a job of their own
    assert post(page, f"/rl/jobs/{job}/cancel") == 403
    forgive_refusals(faults, 1)
    owner = people("moe")
    owner.goto(f"/rl/jobs/{job}")
    assert buttons(owner) == ["Cancel", "Rerun"]
    owner.get_by_role("button", name="Cancel", exact=True).click()
    owner.get_by_role("button", name="Cancel the job").click()
    expect(page.locator("#job-status")).to_contain_text("Cancelled")


def test_a_maintainer_stops_and_deletes_anybodys_job(people, living, job):
    page = people("max")
    page.goto(f"/rl/jobs/{job}")
    assert buttons(page) == ["Cancel", "Rerun"]
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.locator("#job-status")).to_contain_text("Cancelled")
    expect(page.get_by_role("button", name="Delete", exact=True)).to_be_visible()


def test_a_stranger_finds_neither_project_nor_job(people, job, faults):
    page = people("sam")
    for path in ("/rl/jobs", f"/rl/jobs/{job}", "/rl/members", "/rl/jobs/new"):
        page.goto(path)
        expect(page.get_by_role("heading", name="Not found")).to_be_visible()
        expect(page.get_by_text("counting")).to_have_count(0)
    page.goto("/other/jobs")
    assert post(page, f"/rl/jobs/{job}/cancel") == 404
    forgive_refusals(faults, 5)


def test_one_without_a_project_learns_whom_to_ask(people):
    page = people("lou")
    page.goto("/")
    expect(
        page.get_by_role("heading", name="You are not a member of any project yet")
    ).to_be_visible()
    expect(page.locator("#user-name")).to_have_text("lou")
