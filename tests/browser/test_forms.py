"""Forms that are not right: each field that is wrong shows it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.editors import CodeEditor

WRONG = {"Name": "No", "Cron expression": "61 3 * * *", "Time zone": "Berlin"}
BORDER = "e => getComputedStyle(e).borderTopColor"


def test_every_field_of_a_schedule_that_is_wrong_has_a_red_border(page, project, ada, faults):
    page.goto("/rl/new-schedule")
    fine = page.get_by_label("Name", exact=True).evaluate(BORDER)
    for label, text in WRONG.items():
        page.get_by_label(label, exact=True).fill(text)
    CodeEditor(page).fill("nam: x")
    page.get_by_role("button", name="Create schedule").click()
    expect(page.get_by_text("There is no time zone")).to_be_visible()
    faults.expect("422")
    red = page.locator(".framed").evaluate(BORDER)
    assert red != fine
    for label in WRONG:
        assert page.get_by_label(label, exact=True).evaluate(BORDER) == red
    assert page.get_by_label("If the last job still runs").evaluate(BORDER) == fine


def test_the_specification_of_a_schedule_is_checked_in_its_editor_while_one_types(page):
    page.goto("/rl/new-schedule")
    editor = CodeEditor(page)
    editor.fill("run: x\nnum_node: 2\n")
    page.get_by_role("button", name="Line 2").wait_for()
    expect(page.locator(".cm-lintRange-error")).to_have_text("num_node")
    editor.fill("run: a\n---\nrun: b\n")
    page.get_by_text("A schedule runs one job").wait_for()
    editor.fill("run: x\n")
    page.get_by_text("Ready to save 1 node").wait_for()
