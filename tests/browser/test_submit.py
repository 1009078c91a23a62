"""The submit page: checked during typing, filled by the small form, an archive uploaded."""

from __future__ import annotations

import io
import re
import tarfile

import pytest

from jobs.models import Job, Upload

EDITOR = "Job specification, YAML"


@pytest.fixture
def editor(page):
    page.goto("/rl/jobs/new")
    return page.get_by_label(EDITOR)


def test_errors_are_listed_while_one_types_and_lead_to_their_line(page, editor):
    editor.fill("name: hello\nnum_node: 2\nrun: echo\n")
    page.get_by_role("button", name="Line 2").click()
    chosen = "((area) => area.value.slice(area.selectionStart, area.selectionEnd))"
    assert page.evaluate(f"{chosen}(document.getElementById('source'))") == "num_node: 2"
    assert page.locator("#gutter .bad").inner_text() == "2"
    editor.fill("name: hello\nnum_nodes: 2\nrun: echo\n")
    page.get_by_text("Ready to submit").wait_for()
    assert page.locator("#gutter .bad").count() == 0


def test_the_marked_lines_stay_marked_when_the_server_refuses(page, editor, faults):
    editor.fill("name: hello\nnum_node: 2\nrun: echo\n")
    with page.expect_navigation():
        page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_role("button", name="Line 2").wait_for()
    assert page.locator("#gutter .bad").inner_text() == "2"
    faults.expect("422")


def test_what_the_small_form_writes_is_accepted_and_means_what_was_typed(page, editor):
    page.get_by_label("Name", exact=True).fill("a-name")
    page.get_by_label("Command", exact=True).fill(
        "  python - <<'PY'\nprint(\"# not a comment: {}\")\nPY"
    )
    page.get_by_role("button", name="Add a mesh").click()
    page.get_by_label("Name of the mesh").fill("trainers")
    page.get_by_label("Hosts of the mesh").fill("3")
    page.get_by_role("button", name="Generate YAML").click()
    page.get_by_text("Ready to submit 3 nodes, Monarch job, meshes: trainers 3").wait_for()
    editor.press("Control+Enter")
    page.wait_for_url(re.compile(r"/rl/jobs/\d+$"))
    spec = Job.objects.get().spec
    assert spec["run"].rstrip() == "  python - <<'PY'\nprint(\"# not a comment: {}\")\nPY"


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
    assert f"workdir: {Upload.objects.get().reference}" in editor.input_value()
