"""A user loses the right to what an open page shows: the page reports it and loses no text."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Locator, Page, expect

from jobs.actions.accounts.change_user import change_user
from jobs.actions.projects.members import remove_member, set_role
from jobs.models import Job
from jobs.permissions import Actor
from jobs.statuses import JobStatus, Role
from tests.browser.editors import CodeEditor
from tests.browser.test_live import Runner
from tests.browser.visits import PASSWORD, sign_in
from tests.factories import make_job, make_member

TYPED = "name: typed\nrun: echo typed\n"
# What is left to read after the right is lost, in seconds.
SOON_S = 10.0


@pytest.fixture
def boss(project):
    return Actor(
        make_member(project, Role.ADMIN, username="boss", password=PASSWORD, is_superuser=True)
    )


@pytest.fixture
def boss_page(visitors, address, boss):
    page = visitors.open(address)
    sign_in(page, "boss")
    return page


def type_note(page: Page) -> Locator:
    """Begin a note in its dialog, and return its field."""
    page.get_by_role("button", name="Labels and note").click()
    note = page.get_by_role("textbox", name="Note")
    note.fill("half a note")
    return note


def test_a_log_ends_within_seconds_when_its_reader_leaves_the_project(
    page, project, boss, ada, faults
):
    job = make_job(project, status=JobStatus.RUNNING, submitted_by=boss.user)
    runner = Runner(job)
    runner.write(1, "before")
    page.goto(f"/rl/jobs/{job.pk}")
    page.get_by_text("before 1 of rank 0").wait_for()
    began = time.monotonic()
    remove_member(boss, project, "ada")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    assert time.monotonic() - began < SOON_S
    faults.forgive("404")
    faults.forgive("net::ERR")


def test_a_log_shows_no_line_from_after_its_reader_left_the_project(
    page, boss_page, project, boss, faults
):
    job = make_job(project, status=JobStatus.RUNNING, submitted_by=boss.user)
    runner = Runner(job)
    runner.write(1, "before")
    for reader in (page, boss_page):
        reader.goto(f"/rl/jobs/{job.pk}")
        reader.get_by_text("before 1 of rank 0").wait_for()
    # With a note that is being typed the page is not reloaded: its log stays.
    type_note(page)
    remove_member(boss, project, "ada")
    runner.write(1, "after")
    boss_page.get_by_text("after 2 of rank 0").wait_for()
    said = page.get_by_role("dialog").get_by_role("alert")
    expect(said).to_contain_text("You can't see this page any more")
    assert page.get_by_text("before 1 of rank 0").count() == 1
    assert page.get_by_text("after 2 of rank 0").count() == 0
    faults.forgive("404")
    faults.forgive("net::ERR")


def test_a_table_of_a_disabled_user_leads_to_the_sign_in(page, project, boss, faults):
    page.goto("/rl/jobs")
    page.locator("#live-state[data-state=on]").wait_for()
    change_user(boss, "ada", is_active=False)
    page.wait_for_url(re.compile("/sign-in"), timeout=SOON_S * 1000)
    faults.forgive("204")


def test_a_typed_specification_survives_the_loss_of_the_role(page, project, boss, faults):
    page.goto("/rl/jobs/new")
    editor = CodeEditor(page)
    editor.fill(TYPED)
    page.get_by_text("Ready to submit").wait_for()
    set_role(boss, project, "ada", Role.VIEWER)
    editor.type_after("echo typed", " more")
    verdict = page.locator("#verdict")
    expect(verdict).to_contain_text("You can't submit jobs here any more")
    expect(verdict).to_contain_text("this takes the role member")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#plan")).to_contain_text("You can't submit jobs here any more")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
    expect(page.locator("#kept-draft")).to_have_text(f"{TYPED.rstrip()} more\n")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == f"{TYPED.rstrip()} more\n"
    assert not Job.objects.exists()
    faults.forgive("403")


def test_a_typed_specification_of_a_disabled_user_stays_in_the_page(page, project, boss, faults):
    page.goto("/rl/jobs/new")
    editor = CodeEditor(page)
    editor.fill(TYPED)
    page.get_by_text("Ready to submit").wait_for()
    change_user(boss, "ada", is_active=False)
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#plan")).to_have_text(re.compile("You can't submit jobs here any more"))
    page.get_by_label("Name", exact=True).fill("mine")
    page.get_by_label("Name", exact=True).blur()
    expect(page.locator("#f-name-problem")).to_contain_text("You can't submit jobs here any more")
    expect(page.get_by_label("Name", exact=True)).to_have_value("mine")
    assert editor.text == TYPED
    faults.forgive("403")


def test_a_page_with_typed_text_is_not_reloaded_when_its_reader_leaves(
    page, project, boss, ada, faults
):
    job = make_job(project, status=JobStatus.RUNNING, submitted_by=ada)
    page.goto(f"/rl/jobs/{job.pk}")
    page.locator("#log-state[data-state=live]").wait_for()
    note = type_note(page)
    remove_member(boss, project, "ada")
    said = page.get_by_role("dialog").get_by_role("alert")
    expect(said).to_contain_text("You can't see this page any more")
    expect(page.locator("#connection")).to_have_text(said.inner_text())
    expect(note).to_have_value("half a note")
    faults.forgive("404")
    faults.forgive("net::ERR")
