"""Showing what is wrong with a specification."""

from __future__ import annotations

import pytest

from monarch_client.cli.spec_text import excerpt
from monarch_client.errors import SpecError

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
