"""The code editor: completion, explanations, errors at their lines, changes, and its keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.editors import CodeEditor
from tests.factories import make_job, set_default_queue
from tests.waiting import eventually

SPEC = "name: hello\nresources:\n  cpus: 2\nrun: |\n  echo one\n"
TEMPLATE = """\
name: sweep
parameters:
  steps: {type: integer, default: 10}
---
run: train --steps ${{ steps }}
"""


@pytest.fixture
def editor(page):
    page.goto("/rl/jobs/new")
    editor = CodeEditor(page)
    editor.fill(SPEC)
    return editor


def complete(page, words):
    """Take an entry of the open list of completions, once the list is no longer being made."""
    before = page.locator("#source").input_value()

    def is_taken():
        page.get_by_role("option", name=words).first.dispatch_event("mousedown")
        return page.locator("#source").input_value() != before

    assert eventually(is_taken)


def test_keys_values_and_names_are_completed_where_they_fit(page, project, editor):
    project.secrets.create(name="HF_TOKEN", ciphertext=b"-")
    set_default_queue()
    page.reload()
    editor = CodeEditor(page)
    editor.fill(SPEC)
    editor.type_after("cpus: 2", "\nmem")
    complete(page, "memory")
    page.keyboard.type("16\nuse_s")
    complete(page, "use_spot")
    page.keyboard.type("t")
    complete(page, "true")
    editor.expect(SPEC.replace("cpus: 2", "cpus: 2\n  memory: 16\n  use_spot: true"))
    editor.fill("run: echo\n")
    editor.type_after("run", "\nsecrets: [H")
    complete(page, "HF_TOKEN")
    page.keyboard.type("]\nportal:\nif_dep")
    complete(page, "if_dependency_fails")
    page.keyboard.type("ho")
    complete(page, "hold")
    page.keyboard.type("\nqueue: d")
    complete(page, "default")
    editor.expect(
        "run: echo\nsecrets: [HF_TOKEN]\nportal:\n  if_dependency_fails: hold\n  queue: default\n"
    )
    page.get_by_text("Ready to submit").wait_for()


def test_a_key_under_the_mouse_is_explained_as_in_the_reference(page, editor):
    page.locator(".cm-line", has_text="cpus").get_by_text("cpus").hover()
    shown = page.locator(".explanation")
    expect(shown).to_contain_text("cpus")
    expect(shown).to_contain_text("Example")


def test_exactly_the_wrong_value_is_underlined_also_after_characters_of_two_units(page, editor):
    editor.fill('{run: x, envs: {TEAM: "🚀"}, portal: {priority: high}} # high\n')
    expect(page.locator(".cm-lintRange-error")).to_have_text("high")


def test_what_the_server_finds_wrong_is_underlined_and_fixed_by_a_click(page, editor):
    editor.fill(SPEC.replace("cpus", "cpsu"))
    wrong = page.locator(".cm-lintRange-error")
    expect(wrong).to_have_text("cpsu")
    expect(page.locator(".cm-gutterElement.bad")).to_have_text("3")
    page.get_by_role("button", name="Line 3").click()
    wrong.hover()
    page.get_by_role("button", name="Change to cpus").click()
    editor.expect(SPEC)
    page.get_by_text("Ready to submit").wait_for()
    expect(wrong).to_have_count(0)


def test_a_change_in_the_form_leaves_comments_and_the_caret(page, editor):
    editor.fill("# mine\n" + SPEC.replace("2\n", "2  # kept\n"))
    page.locator(".cm-line", has_text="echo one").click()
    page.keyboard.press("End")
    field = page.get_by_label("Nodes", exact=True)
    field.fill("3")
    with page.expect_response("**/jobs/edit"):
        field.blur()
    editor.expect(re.compile(r"# mine\n(.*\n)+  cpus: 2  # kept\n(.*\n)*num_nodes: 3"))
    editor.content.focus()
    page.keyboard.type("!")
    editor.expect(re.compile("echo one!\n"))
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    expect(page.locator(".cm-content")).not_to_contain_text("num_nodes")


def test_tab_indents_what_is_written_and_leaves_after_escape(page, editor):
    focused = "document.activeElement.ariaLabel"
    editor.type_after("cpus: 2", "\nm")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate(focused) != "Job specification, YAML"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(focused) == "Job specification, YAML"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) != "Job specification, YAML"
    editor.fill("run: x")
    page.keyboard.press("Tab")
    editor.expect("  run: x")
    assert page.evaluate(focused) == "Job specification, YAML"


def test_edit_and_submit_shows_the_changes_from_the_earlier_job(page, project, ada):
    job = make_job(project, submitted_by=ada, spec_source=SPEC)
    page.goto(f"/rl/jobs/new?from={job.pk}")
    editor = CodeEditor(page)
    editor.fill(SPEC.replace("cpus: 2", "cpus: 4"))
    expect(page.locator(".cm-deletedLine")).to_have_text("  cpus: 2")
    expect(page.locator(".cm-changedLine")).to_have_text("  cpus: 4")
    page.get_by_role("button", name="Show changes").click()
    expect(page.locator(".cm-deletedLine")).to_have_count(0)


def test_a_template_is_checked_and_its_parameters_are_completed(page, project):
    page.goto("/rl/new-template")
    editor = CodeEditor(page)
    expect(editor.content).to_have_accessible_name("Header and specification, YAML")
    editor.fill(TEMPLATE.replace("steps }", "stpes }"))
    expect(page.get_by_role("button", name="Line 5")).to_contain_text("Did you mean steps?")
    editor.fill(TEMPLATE)
    page.get_by_text("Ready to save").wait_for()
    editor.type_after("run", " ${{ s")
    complete(page, "steps")
    editor.type_after("steps: {", "")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type(", min")
    complete(page, "minimum")
    page.keyboard.type("1")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/rl/templates/sweep")


def test_without_the_library_the_text_area_works(page, faults):
    page.route("**/codemirror.js", lambda route: route.abort())
    page.goto("/rl/jobs/new")
    plain = page.get_by_label("Job specification, YAML")
    plain.fill("nam: x\nrun: echo\n")
    page.get_by_role("button", name="Line 1").click()
    expect(plain).to_be_focused()
    assert page.locator(".cm-editor").count() == 0
    faults.forgive("ERR_FAILED")
