"""The whole way without a mouse: sign in, submit, watch, cancel."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.real.people import PASSWORD

FOCUSED = """() => {
  const it = document.activeElement;
  const body = it === document.body;
  const label = it.ariaLabel || it.labels?.[0]?.innerText || (!body && it.innerText) || "";
  // The editor draws the outline of its text around itself.
  const drawn = it.closest(".cm-editor") ?? it;
  return { name: label.trim(), seen: getComputedStyle(drawn).outlineStyle !== "none", body };
}"""


def walk_to(page: Page, words: str) -> None:
    """Press Tab until the element of that name has focus; every stop on the way is visible."""
    for _ in range(60):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        assert stop["seen"] or stop["body"], stop
        if words in stop["name"]:
            return
    raise AssertionError(f"no way to {words!r}")


@pytest.mark.feature("P7.1")
def test_signing_in_submitting_watching_and_cancelling_take_no_mouse(people):
    page = people.nobody()
    page.goto("/sign-in")
    walk_to(page, "Username")
    page.keyboard.type("mia")
    walk_to(page, "Password")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/rl")
    walk_to(page, "Skip to content")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    walk_to(page, "Submit a job")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/new")
    walk_to(page, "Job specification")
    page.locator(".cm-content").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.type("name: walked\nrun: |\necho by hand\nsleep 300\n")
    page.keyboard.press("Escape")
    walk_to(page, "Submit")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/rl/jobs/\d+$"))
    expect(page.locator("#log-lines")).to_contain_text("by hand")
    expect(page.locator("#job-status")).to_contain_text("Running")
    walk_to(page, "Cancel")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.innerText") == "Keep it running"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "cancel-button"
    page.keyboard.press("Enter")
    walk_to(page, "Cancel the job")
    page.keyboard.press("Enter")
    expect(page.locator("#job-status")).to_contain_text("Cancelled")


def test_tab_never_gets_stuck_and_leaves_a_dialog_only_by_closing_it(people, living):
    job = living.count("mia")
    living.wait(job.id, "RUNNING")
    page = people("mia")
    page.goto(f"/rl/jobs/{job.id}")
    page.locator("#log-state[data-state=live]").wait_for()
    stops = []
    for _ in range(60):
        page.keyboard.press("Tab")
        stops.append(page.evaluate(FOCUSED))
        if stops[-1]["body"]:
            break
    assert stops[-1]["body"], [stop["name"] for stop in stops]
    page.get_by_role("button", name="Cancel", exact=True).click()
    inside = (
        "document.activeElement === document.body || !!document.activeElement.closest('dialog')"
    )
    for _ in range(5):
        page.keyboard.press("Tab")
        assert page.evaluate(inside)


@pytest.mark.feature("S2.5")
def test_an_array_is_submitted_from_a_template_and_a_wrong_value_corrected_without_a_mouse(people):
    page = people("mia")
    page.goto("/rl/templates")
    walk_to(page, "Hyper-parameter sweep")
    page.keyboard.press("Enter")
    page.wait_for_url("**/templates/sweep")
    walk_to(page, "Jobs at once")
    page.keyboard.press("Control+a")
    page.keyboard.type("0")
    walk_to(page, "Submit")
    page.keyboard.press("Enter")
    assert "Jobs at once" in page.evaluate(FOCUSED)["name"]
    page.keyboard.press("Control+a")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="sweep")).to_be_visible()
    expect(page.get_by_role("definition").filter(has_text="2 at once")).to_contain_text("6")
