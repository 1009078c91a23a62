"""A typed specification stays in the browser until it was submitted or discarded."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from jobs.models import Job
from tests.browser.conftest import sign_in
from tests.browser.editors import CodeEditor

TYPED = "name: typed\nrun: echo typed\n"


@pytest.fixture
def editor(page):
    page.goto("/rl/jobs/new")
    return CodeEditor(page)


def restore(page: Page):
    return page.get_by_role("button", name="Restore draft")


def test_a_draft_outlives_its_tab_and_says_when_it_was_typed(page, editor):
    editor.fill(TYPED)
    context = page.context
    page.close()
    again = context.new_page()
    again.goto("/rl/jobs/new")
    note = again.get_by_text(re.compile(r"A draft of 2 lines from \d+:\d\d.* was not submitted"))
    expect(note).to_be_visible()
    expect(again.locator("#source")).not_to_have_value(TYPED)
    restore(again).click()
    expect(again.locator("#source")).to_have_value(TYPED)
    assert not Job.objects.exists()


def test_one_undo_brings_back_the_text_that_a_restored_draft_replaced(page, editor):
    editor.fill(TYPED)
    page.reload()
    editor.fill(TYPED.replace("typed", "newer"))
    restore(page).click()
    editor.expect(TYPED)
    expect(page.get_by_label("Name", exact=True)).to_have_value("typed")
    page.get_by_role("button", name="Undo").click()
    editor.expect(TYPED.replace("typed", "newer"))
    expect(page.get_by_label("Name", exact=True)).to_have_value("newer")


def test_a_draft_outlives_a_sign_out_in_another_tab(page, editor, faults):
    editor.fill(TYPED)
    page.get_by_text("Ready to submit").wait_for()
    other = page.context.new_page()
    other.goto("/rl/jobs")
    other.get_by_label("Account: ada").click()
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/sign-in*")
    with page.expect_navigation():
        page.get_by_role("button", name="Submit", exact=True).click()
    faults.forgive("403")
    sign_in(page)
    page.goto("/rl/jobs/new")
    restore(page).click()
    editor.expect(TYPED)


def test_what_became_several_jobs_is_not_offered_again(page, editor):
    editor.fill(f"{TYPED}---\n{TYPED.replace('typed', 'second')}")
    editor.press("Control+Enter")
    page.wait_for_url(re.compile(r"/rl/jobs$"))
    page.goto("/rl/jobs/new")
    page.get_by_text("Ready to submit").wait_for()
    expect(restore(page)).to_have_count(0)
    assert Job.objects.count() == 2


def test_a_refused_specification_is_still_offered_from_another_page(page, editor, faults):
    wrong = TYPED.replace("run:", "runs:")
    editor.fill(wrong)
    with page.expect_navigation():
        page.get_by_role("button", name="Submit", exact=True).click()
    faults.expect("422")
    page.get_by_role("link", name="Jobs", exact=True).click()
    page.wait_for_url(re.compile(r"/rl/jobs$"))
    page.goto("/rl/jobs/new")
    restore(page).click()
    editor.expect(wrong)


def test_a_discarded_draft_is_gone(page, editor):
    editor.fill(TYPED)
    page.reload()
    page.get_by_role("button", name="Discard").click()
    page.reload()
    page.get_by_text("Ready to submit").wait_for()
    expect(restore(page)).to_have_count(0)
