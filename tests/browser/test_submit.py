"""The submit page: checked during typing, filled by the form, an archive uploaded."""

from __future__ import annotations

import io
import re
import tarfile

import pytest
from playwright.sync_api import expect

from jobs.models import Job, Upload
from tests.browser.editors import CodeEditor


@pytest.fixture
def editor(page):
    page.goto("/rl/jobs/new")
    return CodeEditor(page)


def test_errors_are_listed_while_one_types_and_lead_to_their_line(page, editor):
    editor.fill("name: hello\nnum_node: 2\nrun: echo\n")
    page.get_by_role("button", name="Line 2").click()
    assert page.evaluate("getSelection().toString()") == "num_node: 2"
    expect(page.locator(".cm-gutterElement.bad")).to_have_text("2")
    editor.fill("name: hello\nnum_nodes: 2\nrun: echo\n")
    page.get_by_text("Ready to submit").wait_for()
    expect(page.locator(".cm-gutterElement.bad")).to_have_count(0)


def test_the_marked_lines_stay_marked_when_the_server_refuses(page, editor, faults):
    editor.fill("name: hello\nnum_node: 2\nrun: echo\n")
    with page.expect_navigation():
        page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_role("button", name="Line 2").wait_for()
    assert page.locator("#gutter .bad").inner_text() == "2"
    faults.expect("422")


def change(page, label, value):
    """Fill a field of the form and leave it, so that it is written into the text."""
    field = page.get_by_label(label, exact=True)
    field.fill(value)
    with page.expect_response("**/jobs/edit"):
        field.blur()


def test_the_form_and_the_text_show_each_other_and_comments_stay(page, editor):
    editor.fill("# mine\nname: a-name  # kept\nrun: echo\n")
    expect(page.get_by_label("Name", exact=True)).to_have_value("a-name")
    change(page, "Command", "  python - <<'PY'\nprint(\"# not a comment: {}\")\nPY")
    change(page, "Nodes", "3")
    page.get_by_text("Monarch", exact=True).click()
    page.get_by_label("New mesh", exact=True).fill("trainers")
    change(page, "Nodes of the new mesh", "3")
    page.get_by_text("Ready to submit 3 nodes, Monarch job, meshes: trainers 3").wait_for()
    text = editor.text
    assert text.startswith("# mine\nname: a-name  # kept\nrun: ")
    assert text.endswith("num_nodes: 3\nportal:\n  meshes:\n    trainers: 3\n")
    change(page, "Name", "")
    assert "name:" not in editor.text
    editor.fill("name: [")
    expect(page.get_by_text("The form is off until the text is valid YAML.")).to_be_visible()
    editor.fill(text)
    page.get_by_text("Ready to submit").wait_for()
    editor.press("Control+Enter")
    page.wait_for_url(re.compile(r"/rl/jobs/\d+$"))
    spec = Job.objects.get().spec
    assert spec["run"].rstrip() == "  python - <<'PY'\nprint(\"# not a comment: {}\")\nPY"


def test_submit_and_plan_wait_until_the_change_of_a_field_is_in_the_text(page, editor):
    editor.fill("name: a-name\nrun: echo before\n")
    expect(page.get_by_label("Command", exact=True)).to_have_value("echo before")
    page.get_by_label("Command", exact=True).fill("echo planned")
    with page.expect_request("**/plan") as planned:
        page.get_by_role("button", name="Plan", exact=True).click()
    assert "planned" in (planned.value.post_data or "")
    page.get_by_label("Command", exact=True).fill("echo after")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url(re.compile(r"/rl/jobs/\d+"))
    assert Job.objects.get().spec["run"] == "echo after"


def test_a_value_that_the_form_refuses_is_never_left_out_of_a_submit(page, editor):
    editor.fill("name: a-name\nrun: echo\n")
    page.get_by_text("Ready to submit").wait_for()
    page.get_by_text("Array", exact=True).click()
    page.get_by_label("New name", exact=True).fill("lr")
    change(page, "Values of the new name", "[{[a]: 1}]")
    values = page.locator("#f-portal-array-value-0")
    expect(values).to_have_attribute("aria-invalid", "true")
    editor.type_after("run: echo", " more")
    expect(page.get_by_label("Command", exact=True)).to_have_value("echo more")
    expect(values).to_have_value("[{[a]: 1}]")
    page.get_by_text("Array", exact=True).click()
    problem = page.locator("#f-portal-array-value-0-problem")
    for button in ("Submit", "Plan"):
        with page.expect_response("**/jobs/edit"):
            page.get_by_role("button", name=button, exact=True).click()
        expect(values).to_be_focused()
        expect(problem).to_contain_text("this value is not valid YAML")
        page.get_by_label("Name", exact=True).focus()
    assert not Job.objects.exists()
    change(page, "Values of the new name", "[1, 2]")
    expect(problem).to_have_count(0)
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url(re.compile(r"/rl/arrays/\d+$"))
    assert Job.objects.count() == 2


VARIABLES = """\
run: x
envs:
  LR: 1  # kept
  TOKEN: null
  KEY: |
    one
    two: 2
"""


def test_variables_are_changed_named_added_and_removed_one_by_one(page, editor):
    editor.fill(VARIABLES)
    expect(page.get_by_label("Value of KEY", exact=True)).to_have_value("one\ntwo: 2\n")
    change(page, "Value of LR", "2")
    editor.expect(VARIABLES.replace("LR: 1", "LR: 2"))
    page.get_by_label("Variable TOKEN", exact=True).fill("NAME")
    page.keyboard.press("Tab")
    page.keyboard.type("given")
    page.keyboard.press("Tab")
    text = VARIABLES.replace("LR: 1", "LR: 2").replace("TOKEN: null", "NAME: given")
    editor.expect(text)
    page.get_by_label("New variable", exact=True).fill("NEW")
    page.keyboard.press("Tab")
    page.keyboard.type("a: b")
    page.keyboard.press("Tab")
    editor.expect(f'{text}  NEW: "a: b"\n')
    with page.expect_response("**/jobs/edit"):
        page.get_by_role("button", name="Remove KEY", exact=True).click()
    expect(page.get_by_label("New variable", exact=True)).to_be_focused()
    editor.expect(text.partition("  KEY")[0] + '  NEW: "a: b"\n')


def test_half_of_a_row_is_never_left_out_of_a_submit(page, editor):
    editor.fill("run: echo\n")
    page.get_by_text("Ready to submit").wait_for()
    value = page.get_by_label("Value of the new variable", exact=True)
    value.fill("lost?")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.locator("#f-envs-value-0-problem")).to_contain_text(
        "Complete this row, or empty it."
    )
    assert not Job.objects.exists()
    value.fill("")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url(re.compile(r"/rl/jobs/\d+$"))


def test_a_refused_value_is_discarded_or_written_once_the_text_is_valid_again(page, editor):
    editor.fill("name: [")
    expect(page.get_by_text("The form is off until the text is valid YAML.")).to_be_visible()
    change(page, "Command", "echo kept")
    change(page, "Name", "unwanted")
    page.locator("#f-name-problem").get_by_role("button", name="Discard").click()
    expect(page.get_by_label("Name", exact=True)).not_to_have_value("unwanted")
    editor.fill("name: b\n")
    expect(page.get_by_label("Name", exact=True)).to_have_value("b")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url(re.compile(r"/rl/jobs/\d+$"))
    spec = Job.objects.get().spec
    assert (spec["name"], spec["run"].strip()) == ("b", "echo kept")


def test_an_uploaded_archive_becomes_the_workdir(page, editor, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("train.py")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"pass\n"))
    page.get_by_label("A .tar.gz").set_input_files(
        {"name": "code.tar.gz", "mimeType": "application/gzip", "buffer": packed.getvalue()}
    )
    page.get_by_role("button", name="Use as workdir").click()
    page.get_by_text("Ready to submit").wait_for()
    editor.expect(re.compile(f"workdir: {Upload.objects.get().reference}"))


def test_an_upload_fills_the_work_directory_of_a_template(page, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("pass\n")
    page.goto("/rl/templates/torchrun")
    page.get_by_label("Drop a folder here, or choose one").set_input_files(tmp_path / "code")
    page.get_by_role("button", name="Use as workdir").click()
    expect(page.get_by_label("Work directory")).to_have_value(Upload.objects.get().reference)


def test_a_chosen_folder_is_packed_and_uploaded(page, editor, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    (tmp_path / "code" / "deep").mkdir(parents=True)
    (tmp_path / "code" / ".git").mkdir()
    (tmp_path / "code" / ".git" / "config").write_text("secret")
    (tmp_path / "code" / "train.py").write_text("print('hello')\n" * 100)
    (tmp_path / "code" / "deep" / "päth.txt").write_text("x")
    page.get_by_label("Drop a folder here, or choose one").set_input_files(tmp_path / "code")
    page.get_by_role("button", name="Use as workdir").click()
    page.get_by_text("Ready to submit").wait_for()
    upload = Upload.objects.get()
    assert upload.file_count == 2
    editor.expect(re.compile(f"workdir: {upload.reference}"))


@pytest.mark.feature("S2.8")
def test_the_form_is_filled_from_the_project_file_of_a_chosen_folder(
    page, editor, settings, tmp_path
):
    settings.MEDIA_ROOT = tmp_path / "media"
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "portal.yaml").write_text("name: ours\nrun: python train.py\n")
    (tmp_path / "code" / "pyproject.toml").write_text("[project]\nname = 'of-others'\n")
    page.get_by_label("Drop a folder here, or choose one").set_input_files(tmp_path / "code")
    page.get_by_role("button", name="Fill the form from portal.yaml", exact=True).click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("ours")
    page.get_by_text("Ready to submit").wait_for()
    text = editor.text
    assert text.startswith("name: ours\nrun: python train.py\n")
    assert Upload.objects.get().reference in text


def test_one_undo_brings_back_the_text_that_a_project_file_replaced(
    page, editor, settings, tmp_path
):
    settings.MEDIA_ROOT = tmp_path / "media"
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "portal.yaml").write_text("name: ours\nrun: python train.py\n")
    typed = "name: mine\nrun: echo mine\n"
    editor.fill(typed)
    page.get_by_label("Drop a folder here, or choose one").set_input_files(tmp_path / "code")
    fill = page.get_by_role("button", name="Fill the form from portal.yaml", exact=True)
    undo = page.get_by_role("button", name="Undo")
    for go_back in (undo.click, lambda: editor.press("Control+z")):
        fill.click()
        expect(page.get_by_label("Name", exact=True)).to_have_value("ours")
        expect(undo).to_be_in_viewport()
        go_back()
        editor.expect(typed)
        expect(page.get_by_label("Name", exact=True)).to_have_value("mine")
        expect(undo).to_have_count(0)


ARRAY = "run: echo\nportal: {max_duration: 1h, array: {n: [1, 2, 3]}, max_parallel: 2}\n"


def test_the_size_of_an_array_is_shown_while_one_types_and_in_its_plan(page, editor):
    editor.fill(ARRAY)
    page.get_by_text("Ready to submit 1 node, array of 3 jobs, 2 at a time").wait_for()
    page.get_by_role("button", name="Plan", exact=True).click()
    plan = page.locator("#plan")
    expect(plan).to_contain_text("1 node, array of 3 jobs, 2 at a time. At most $0 in total.")
    plan.get_by_text("Values that the portal sets").click()
    expect(plan.get_by_role("row", name="portal.priority")).to_contain_text("default")


def test_several_documents_are_ready_to_submit_and_their_errors_are_on_their_lines(page, editor):
    editor.fill("name: a\nrun: x\n---\nname: b\nrun: x\n")
    page.get_by_text("Ready to submit 2 jobs of 2 specifications").wait_for()
    editor.fill("name: a\nrun: x\n---\nname: b\nrunn: x\n")
    page.get_by_role("button", name="Line 5").wait_for()


def test_an_example_replaces_what_was_typed_only_with_a_way_back(page, editor):
    typed = "name: mine\nrun: echo mine\n"
    undo = page.get_by_role("button", name="Undo")
    page.get_by_role("link", name="Hello mesh").click()
    editor.expect(re.compile("name: hello-mesh"))
    expect(undo).to_have_count(0)
    editor.fill(typed)
    page.get_by_role("link", name="Plain, two nodes").click()
    editor.expect(re.compile("name: two-nodes"))
    undo.click()
    editor.expect(typed)
    page.get_by_role("link", name="Plain, two nodes").click()
    editor.type_after("name: two-nodes", "-b")
    expect(undo).to_have_count(0)


def test_a_plan_with_its_values_is_no_wider_than_a_phone(page, editor):
    page.set_viewport_size({"width": 390, "height": 844})
    editor.fill(ARRAY)
    page.get_by_text("Ready to submit").wait_for()
    page.get_by_role("button", name="Plan", exact=True).click()
    page.locator("#plan").get_by_text("Values that the portal sets").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
