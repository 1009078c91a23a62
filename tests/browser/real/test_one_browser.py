"""Two tabs, the back button, no script, reduced motion: how browsers really are."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.real.people import PASSWORD


def test_what_one_tab_does_the_other_one_sees(people, living, faults):
    job = living.count("mia")
    living.wait(job.id, "RUNNING")
    first = people("mia")
    first.goto(f"/rl/jobs/{job.id}")
    first.locator("#log-state[data-state=live]").wait_for()
    second = first.context.new_page()
    second.goto("/rl/jobs")
    second.locator("#live-state[data-state=on]").wait_for()
    first.get_by_role("button", name="Cancel", exact=True).click()
    first.get_by_role("button", name="Cancel the job").click()
    expect(second.locator(f"#job-{job.id}")).to_contain_text("Cancelled")
    expect(first.locator("#job-status")).to_contain_text("Cancelled")


def test_a_tab_that_was_signed_out_in_another_one_asks_to_sign_in_and_comes_back(people):
    page = people.nobody()
    page.goto("/sign-in?next=/rl/jobs")
    page.get_by_label("Username").fill("mia")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.locator("#live-state[data-state=on]").wait_for()
    other = page.context.new_page()
    other.goto("/settings/tokens")
    other.get_by_label("Account: mia").click()
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/sign-in")
    # What a tab does when it is looked at again.
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_url("**/sign-in?next=/rl/jobs")


def test_the_back_button_brings_filters_and_the_page_before_back(people, living):
    job = living.submit("mia", "name: to-be-found\nrun: echo\n")
    living.wait(job, "SUCCEEDED")
    page = people("mia")
    page.goto("/rl/jobs")
    page.get_by_label("Search by name or number").fill("to-be-found")
    page.wait_for_url("**/rl/jobs?q=to-be-found")
    page.get_by_role("link", name="to-be-found", exact=True).click()
    page.wait_for_url(re.compile(rf"/rl/jobs/{job}$"))
    page.get_by_role("tab", name="Spec").click()
    page.go_back()
    page.wait_for_url("**/rl/jobs?q=to-be-found")
    expect(page.get_by_label("Search by name or number")).to_have_value("to-be-found")
    page.go_back()
    page.wait_for_url(re.compile(r"/rl/jobs$"))
    expect(page.get_by_label("Search by name or number")).to_have_value("")


def test_without_javascript_one_signs_in_filters_submits_and_cancels(people, faults):
    page = people.nobody(java_script_enabled=False)
    page.goto("/")
    page.get_by_label("Username").fill("mia")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.goto("/rl/jobs/new")
    editor = page.get_by_label("Job specification, YAML")
    editor.fill("name: no-script\nnum_node: 1\nrun: sleep 300\n")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_text("Line 2")).to_be_visible()
    faults.expect("422")
    editor.fill("name: no-script\nnum_nodes: 1\nrun: sleep 300\n")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url(re.compile(r"/rl/jobs/\d+$"))
    expect(page.get_by_role("link", name="Download", exact=True)).to_be_visible()
    page.get_by_role("link", name="Events").click()
    expect(page.get_by_text("Submitted").first).to_be_visible()
    page.goto("/rl/jobs")
    page.get_by_label("Search by name or number").fill("no-script")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url(re.compile("q=no-script"))
    page.get_by_role("link", name="no-script", exact=True).click()
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.locator("#job-head")).to_contain_text(re.compile("Cancelled|Stopping"))


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_what_moves_stands_still_for_those_who_ask_for_it(people, living, motion):
    job = living.count("mia")
    living.wait(job.id, "RUNNING")
    page = people("mia", reduced_motion=motion)
    page.goto(f"/rl/jobs/{job.id}")
    page.locator("#log-state[data-state=live]").wait_for()
    moving = page.evaluate("document.getAnimations().length")
    assert (moving == 0) is (motion == "reduce")
