"""A walk without a mouse."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from jobs.models import Job
from jobs.statuses import JobStatus
from tests.browser.editors import CodeEditor
from tests.factories import make_job, make_template


def focused(page):
    return page.evaluate(
        "(document.activeElement.ariaLabel || document.activeElement.innerText || '').trim()"
    )


def tab_to(page, words):
    """Press Tab until the focused element contains `words`."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if words in focused(page):
            return
    raise AssertionError(f"no way to {words!r}")


@pytest.mark.feature("P7.1")
def test_from_the_table_over_a_submit_to_a_cancelled_job(page, project):
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to content"
    tab_to(page, "Submit a job")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/new")
    tab_to(page, "One Python script")
    page.keyboard.press("Enter")
    page.get_by_text("Ready to submit").wait_for()
    assert focused(page) == "Job specification, YAML"
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/rl/jobs/\d+$"))
    tab_to(page, "Cancel")
    page.keyboard.press("Enter")
    tab_to(page, "Cancel the job")
    page.keyboard.press("Enter")
    page.get_by_text("Cancelled by ada.").first.wait_for()
    assert Job.objects.get().status == JobStatus.CANCELLED


def test_the_form_of_a_template_is_filled_in_and_submitted(page, project):
    make_template(project)
    page.goto("/rl/templates")
    tab_to(page, "Hello on several nodes")
    page.keyboard.press("Enter")
    page.wait_for_url("**/rl/templates/grid")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.labels?.[0]?.innerText") == "Nodes":
            break
    page.keyboard.press("Control+a")
    page.keyboard.type("3")
    tab_to(page, "Submit")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/rl/jobs/\d+$"))
    assert Job.objects.get().num_nodes == 3


def test_every_stop_of_the_tab_key_can_be_seen(page, project, ada):
    page.goto(f"/rl/jobs/{make_job(project, submitted_by=ada, num_nodes=3).pk}")
    for _ in range(25):
        page.keyboard.press("Tab")
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        if page.evaluate("document.activeElement !== document.body"):
            assert page.evaluate(outline) != "none", focused(page)


def test_escape_and_tab_leave_the_editor_and_enter_keeps_the_indentation(page):
    page.goto("/rl/jobs/new")
    editor = CodeEditor(page)
    editor.fill("run: |\n  echo one")
    editor.press("Control+End")
    editor.press("Enter")
    page.keyboard.type("echo two")
    assert editor.text == "run: |\n  echo one\n  echo two"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert focused(page) != "Job specification, YAML"


def test_slash_focuses_the_search_field_and_question_mark_lists_the_keys(page, project, ada):
    make_job(project, submitted_by=ada)
    page.goto("/rl/jobs")
    page.keyboard.press("/")
    assert focused(page) == "Search by name or number"
    page.keyboard.type("a/?")
    assert page.get_by_label("Search by name or number").input_value() == "a/?"
    page.goto("/rl/jobs")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_be_visible()
    assert keys.locator("kbd").all_inner_texts() == ["Ctrl K", "/", "?"]
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


def test_the_focus_goes_on_where_a_button_has_removed_itself(page, project, ada):
    jobs = [make_job(project, name=f"eval-{n}", submitted_by=ada) for n in range(2)]
    page.goto("/rl/jobs")
    tab_to(page, f"Select job {jobs[1].pk}")
    page.keyboard.press("Space")
    tab_to(page, "Clear selection")
    page.keyboard.press("Enter")
    assert focused(page) == "Select all jobs of this page"
    watched = {job.pk: {"name": job.name, "href": f"/rl/jobs/{job.pk}"} for job in jobs}
    page.evaluate(
        "(all) => localStorage.setItem('notices ada', all)", json.dumps({"watched": watched})
    )
    page.goto("/settings/notifications")
    tab_to(page, "Stop watching")
    for left in (
        f"Stop watching eval-1 #{jobs[1].pk}",
        "Notify me when one of my jobs starts or ends",
    ):
        page.keyboard.press("Enter")
        assert left in page.evaluate(
            "document.activeElement.ariaLabel ?? document.activeElement.labels[0].innerText"
        )


def test_arrow_keys_walk_the_tabs_of_a_job(page, project, ada):
    page.goto(f"/rl/jobs/{make_job(project, submitted_by=ada).pk}")
    page.get_by_role("tab", name="Log").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tabpanel", name="Events").is_visible()
    assert page.url.endswith("/events")


def test_a_menu_closes_on_escape_and_gives_the_focus_back(page):
    page.get_by_label("Account: ada").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert focused(page) == "All projects"
    page.keyboard.press("Escape")
    assert not page.get_by_text("Signed in as").is_visible()
    assert focused(page) == "Account: ada"
