"""The table of a busy project: filters, pages, and rows that come by themselves meanwhile."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from jobs.actions.jobs.cancel import cancel_job
from jobs.models import Job
from jobs.permissions import Actor
from jobs.statuses import JobKind, JobStatus, Role
from tests.factories import make_job, make_member


@pytest.fixture
def many(project, ada):
    """Create 120 jobs of two people: every tenth failed, every other has a mesh."""
    mia = make_member(project, Role.MEMBER, username="mia")
    return [
        make_job(
            project,
            name=f"job-{n:03d}",
            status=JobStatus.FAILED if n % 10 == 0 else JobStatus.SUCCEEDED,
            kind=JobKind.MONARCH if n % 2 else JobKind.PLAIN,
            submitted_by=ada if n % 3 else mia,
        )
        for n in range(1, 121)
    ]


def names(page):
    page.locator("#live-state[data-state=on]").wait_for()
    return page.locator(".jobs .name a:not(.row-history)").all_inner_texts()


def names_become(page, first, count):
    expect(page.locator(".jobs .name a:not(.row-history)")).to_have_count(count)
    expect(page.locator(".jobs .name a:not(.row-history)").first).to_have_text(first)


def test_pages_lead_to_every_job_once_and_back(page, many):
    page.goto("/rl/jobs")
    seen = names(page)
    for count in (50, 20):
        page.get_by_role("link", name="Older").click()
        expect(page.locator(".jobs .name a:not(.row-history)")).to_have_count(count)
        seen += names(page)
    assert seen == [f"job-{n:03d}" for n in range(120, 0, -1)]
    page.get_by_role("link", name="Newer").click()
    names_become(page, "job-070", 50)


def test_filters_narrow_the_table_add_up_and_stand_in_the_address(page, many):
    page.goto("/rl/jobs")
    page.locator("#chip-failed").click()
    names_become(page, "job-120", 12)
    page.get_by_label("Owner").select_option("me")
    names_become(page, "job-110", 8)
    page.get_by_label("Search by name or number").fill("job-02")
    names_become(page, "job-020", 1)
    for query in ("status=FAILED", "q=job-02", "user=me"):
        expect(page).to_have_url(re.compile(rf"[?&]{query}(&|$)"))
    page.reload()
    names_become(page, "job-020", 1)
    page.get_by_label("Search by name or number").fill("nowhere")
    page.get_by_role("link", name="Clear filters").click()
    names_become(page, "job-120", 50)


def test_a_number_in_the_search_finds_the_job_with_that_number(page, many):
    page.goto("/rl/jobs")
    page.get_by_label("Search by name or number").fill(str(many[4].pk))
    expect(page.get_by_role("link", name="job-005", exact=True)).to_be_visible()


def test_a_new_job_comes_in_on_top_and_the_page_keeps_its_length(page, project, ada, many):
    page.goto("/rl/jobs")
    assert names(page)[0] == "job-120"
    cancel_job(Actor(ada), make_job(project, name="newcomer", submitted_by=ada))
    names_become(page, "newcomer", 50)
    expect(page.locator("#chip-all")).to_contain_text("121")


def test_two_statuses_at_once_are_shown_together(page, project, ada, many):
    make_job(project, name="waiting", submitted_by=ada)
    page.goto("/rl/jobs")
    page.locator("#chip-queued").click()
    names_become(page, "waiting", 1)
    page.locator("#chip-failed").click()
    names_become(page, "waiting", 13)
    page.locator("#chip-queued").click()
    names_become(page, "job-120", 12)


def test_a_heading_sorts_and_a_filter_keeps_the_order_and_its_counts(page, many):
    page.goto("/rl/jobs")
    page.get_by_role("link", name="Job", exact=True).click()
    names_become(page, "job-001", 50)
    page.get_by_label("Owner").select_option("mia")
    names_become(page, "job-003", 40)
    expect(page.locator("#chip-failed")).to_contain_text("4")
    expect(page).to_have_url(re.compile(r"sort=name"))
    page.get_by_label("Labels, separated by commas").fill("team=none")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="No matching jobs")).to_be_visible()


def test_days_replace_the_last_days_and_the_button_of_more_filters_stays_in_place(page, many):
    Job.objects.filter(name="job-001").update(created_at="2026-03-05T12:00:00Z")
    page.goto("/rl/jobs")
    page.get_by_label("Submitted", exact=True).select_option("7d")
    names_become(page, "job-120", 50)
    button = page.get_by_text("More filters")
    before = button.bounding_box()
    button.click()
    assert button.bounding_box() == before
    page.get_by_label("From").fill("2026-03-05")
    page.get_by_label("to", exact=True).fill("2026-03-05")
    names_become(page, "job-001", 1)
    expect(page.get_by_label("Submitted", exact=True)).to_have_value("")
    page.get_by_label("Submitted", exact=True).select_option("24h")
    names_become(page, "job-120", 50)
    expect(page.get_by_label("From")).to_have_value("")


def test_unfinished_jobs_stay_on_top_while_newer_ones_end(page, project, ada, many):
    make_job(project, name="waiting", submitted_by=ada)
    make_job(project, name="over", submitted_by=ada, status=JobStatus.FAILED)
    page.goto("/rl/jobs")
    names_become(page, "over", 50)
    page.get_by_text("More filters").click()
    page.get_by_label("Unfinished jobs on top").check()
    names_become(page, "waiting", 50)
    page.locator("#live-state[data-state=on]").wait_for()
    cancel_job(Actor(ada), make_job(project, name="newcomer", submitted_by=ada))
    expect(page.locator("#chip-all")).to_contain_text("123")
    names_become(page, "waiting", 50)


def test_the_filters_of_the_moment_are_saved_as_a_view_and_come_back(page, many):
    page.goto("/rl/jobs")
    page.get_by_label("Owner").select_option("mia")
    names_become(page, "job-120", 40)
    page.get_by_text("Save view").click()
    page.get_by_label("Name of the view").fill("Of Mia")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("View Of Mia is saved.")).to_be_visible()
    page.goto("/rl/jobs")
    names_become(page, "job-120", 50)
    page.get_by_role("link", name="Of Mia").click()
    names_become(page, "job-120", 40)
    expect(page.get_by_role("link", name="Of Mia")).to_have_attribute("aria-current", "true")
