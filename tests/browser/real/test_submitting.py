"""The way from an idea to a running job, by the form or by YAML; nothing typed is lost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.editors import CodeEditor

JOB_PAGE = re.compile(r"/rl/jobs/\d+$")
WRONG = "name: typed\nnum_node: 2\nrun: echo typed\n"


@pytest.fixture
def page(people):
    page = people("mia")
    page.goto("/rl/jobs/new")
    return page


@pytest.fixture
def editor(page):
    return CodeEditor(page)


@pytest.mark.smoke
def test_the_form_leads_to_a_job_that_runs_and_shows_its_lines(page):
    page.get_by_role("link", name="One Python script").click()
    for label, text in (("Name", "by-form"), ("Command", "echo written by a form")):
        field = page.get_by_label(label, exact=True)
        field.fill(text)
        with page.expect_response("**/jobs/edit"):
            field.blur()
    page.get_by_text("Ready to submit").wait_for()
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url(JOB_PAGE)
    expect(page.get_by_role("heading", name="by-form")).to_be_visible()
    expect(page.locator("#log-lines")).to_contain_text("written by a form")
    expect(page.locator("#job-status")).to_contain_text("Succeeded")


def test_yaml_with_a_mistake_is_marked_at_its_line_and_runs_when_mended(page, editor, faults):
    editor.fill(WRONG)
    page.get_by_role("button", name="Line 2").wait_for()
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.locator("#gutter .bad")).to_have_text("2")
    expect(page.get_by_role("button", name="Line 2")).to_contain_text("num_nodes")
    editor.expect(WRONG)
    faults.expect("422")
    editor.fill(WRONG.replace("num_node:", "num_nodes:"))
    page.get_by_text("Ready to submit").wait_for()
    editor.press("Control+Enter")
    page.wait_for_url(JOB_PAGE)
    expect(page.locator("#job-status")).to_contain_text("Succeeded")


def test_an_example_that_replaces_what_was_typed_can_be_undone(page, editor):
    editor.fill("name: mine\nrun: echo mine\n")
    page.get_by_role("link", name="One Python script").click()
    editor.expect(re.compile("count-primes"))
    editor.press("Control+z")
    editor.expect("name: mine\nrun: echo mine\n")


def test_what_was_typed_outlives_a_reload_and_a_walk_to_another_page(page, editor):
    editor.fill(WRONG)
    page.reload()
    page.get_by_role("button", name="Restore draft").click()
    editor.expect(WRONG)
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Members").click()
    page.wait_for_url("**/members")
    page.goto("/rl/jobs/new")
    page.get_by_role("button", name="Restore draft").click()
    editor.expect(WRONG)


def test_what_was_typed_outlives_a_session_that_ended_meanwhile(page, editor, living, faults):
    editor.fill("name: late\nrun: echo late\n")
    page.get_by_text("Ready to submit").wait_for()
    page.context.clear_cookies()
    with page.expect_navigation():
        page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("heading", name="The form was not submitted")).to_be_visible()
    faults.expect("403")
    page.context.add_cookies([{**living.cookie("mia"), "url": living.url}])
    page.get_by_role("link", name="Reload the page").click()
    page.get_by_role("button", name="Restore draft").click()
    editor.expect("name: late\nrun: echo late\n")


def test_a_text_that_has_not_been_looked_at_is_not_called_right(page, editor):
    page.get_by_text("Ready to submit").wait_for()
    page.route("**/validate", lambda route: None)
    editor.fill("name: other\nrun: echo other\n")
    expect(page.locator("#verdict")).to_have_text("Checking …")


def test_what_became_a_job_is_not_offered_again(page, editor):
    editor.fill("name: sent\nrun: echo sent\n")
    page.get_by_text("Ready to submit").wait_for()
    editor.press("Control+Enter")
    page.wait_for_url(JOB_PAGE)
    page.locator("#log-state[data-state]").wait_for()
    page.goto("/rl/jobs/new")
    page.get_by_text("Ready to submit").wait_for()
    expect(page.get_by_role("button", name="Restore draft")).to_have_count(0)


def test_two_clicks_on_submit_are_one_job(page, editor, living):
    editor.fill("name: clicked-twice\nrun: echo\n")
    page.get_by_text("Ready to submit").wait_for()
    page.get_by_role("button", name="Submit", exact=True).dblclick()
    page.wait_for_url(JOB_PAGE)
    page.goto("/rl/jobs?q=clicked-twice")
    expect(page.get_by_role("link", name="clicked-twice", exact=True)).to_have_count(1)


def test_a_check_that_cannot_reach_the_portal_says_so_and_keeps_the_text(page, editor, faults):
    page.context.set_offline(True)
    editor.fill(WRONG)
    expect(page.locator("#verdict")).to_contain_text("Check failed")
    page.context.set_offline(False)
    editor.expect(WRONG)
    expect(page.get_by_role("button", name="Line 2")).to_be_visible()
    faults.forgive_unreachable()
