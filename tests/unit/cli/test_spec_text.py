"""Showing what is wrong with a specification."""

from __future__ import annotations

import pytest

from monarch_client.cli.spec_text import excerpt, text_from
from monarch_client.errors import SpecError
from tests.each_case import check_each

BLOCK = """\
# who
name: old  # kept
envs:
  A: "1"  # lost with the value
  B: two

run: |
  echo one
  echo two
"""


def test_an_error_is_shown_under_its_line():
    error = SpecError("envs.B", 5, "bad_value", "Not so.", "C")
    assert excerpt(BLOCK, error, "job.yaml").splitlines() == [
        "job.yaml:5: envs.B: Not so.",
        "  Did you mean C?",
        '     4 |   A: "1"  # lost with the value',
        "     5 |   B: two",
        "       |   ^",
        "     6 | ",
    ]


def test_a_key_that_the_message_begins_with_is_not_said_twice():
    error = SpecError("envs.B", 5, "bad_value", "envs.B is not so.")
    assert excerpt(BLOCK, error, "job.yaml").startswith("job.yaml:5: envs.B is not so.\n")


def test_a_key_that_is_not_in_its_line_marks_the_whole_line():
    error = SpecError("", 2, "yaml_syntax", "Not YAML.")
    assert "       | ^^^^^^^^^^^^^^^^^" in excerpt(BLOCK, error, "f").splitlines()


@pytest.mark.parametrize("line", [None, 0, 99])
def test_an_error_without_a_line_is_one_sentence(line):
    text = excerpt(BLOCK, SpecError("run", line, "missing", "There is no run."), "f")
    assert text.endswith("run: There is no run.")


def test_text_that_is_not_utf8_is_refused_with_its_line_by_every_command(
    mportal, portal, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    content = "# a\nname: caf\xe9\nrun: x\n".encode("latin-1")
    for name in ("job.yaml", "portal.yaml"):
        (tmp_path / name).write_bytes(content)
    commands = (
        ("submit", "job.yaml"),
        ("submit",),
        ("plan", "job.yaml"),
        ("dev", "--file", "job.yaml", "true"),
        ("run", "true"),
        ("schedule", "add", "a", "job.yaml", "--cron", "@daily"),
        ("template", "save", "job.yaml"),
        ("template", "run", "a", "-P", "a=@job.yaml"),
    )

    def check(*words: str) -> None:
        result = mportal(*words)
        assert "yaml:2: byte 0xe9 is not UTF-8. Save the file as UTF-8." in result.stderr
        assert result.exit_code == 2, result.exception

    check_each(commands, check)
    assert not portal.requests


def test_a_byte_order_mark_and_line_ends_of_windows_are_no_part_of_a_text(tmp_path):
    file = tmp_path / "job.yaml"
    file.write_bytes(b"\xef\xbb\xbfrun: x\r\n")
    assert text_from(str(file)) == "run: x\n"
