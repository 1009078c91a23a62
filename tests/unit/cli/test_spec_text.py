"""Changing one key of a specification in place, and showing what is wrong with one."""

from __future__ import annotations

import pytest
import yaml

from monarch_client.cli.spec_text import excerpt, set_key
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


@pytest.mark.parametrize(
    "text",
    [
        BLOCK,
        "name: old\nrun: x",
        "{name: old, run: x}",
        "{}",
        '{"run": "x"}\n',
        "run: x\n...\n",
        "",
    ],
)
@pytest.mark.parametrize("key", ["name", "envs", "run", "workdir"])
@pytest.mark.parametrize("value", ["new", {"A": "ü", "C": 'x: "y"'}])
def test_only_the_key_changes(text, key, value):
    changed = yaml.safe_load(set_key(text, key, value))
    assert changed == {**(yaml.safe_load(text) or {}), key: value}


def test_comments_and_lines_before_the_key_stay():
    changed = set_key(BLOCK, "name", "new")
    assert changed == BLOCK.replace("name: old ", 'name: "new" ')
    assert set_key(BLOCK, "workdir", "w").startswith(BLOCK)


@pytest.mark.parametrize(
    ("text", "portal"),
    [
        ("run: x\n", {}),
        ("run: x\nportal:\n", {}),
        ("portal:\n  # why\n  priority: 9\n  meshes:\n    a: 1\nrun: x\n", {"priority": 9}),
        ("portal: {priority: 9}\nrun: x\n", {"priority": 9}),
        ("portal: {}\nrun: x\n", {}),
        ("{run: x, portal: {priority: 9}}", {"priority": 9}),
        ("portal: {hold: false}\n", {}),
        ("portal:\n  priority: 9\n  hold: false  # no\n", {"priority": 9}),
        ("portal: &all\n  priority: 9\n", {"priority": 9}),
        ("", {}),
    ],
)
def test_a_key_within_a_block_is_set_and_the_others_stay(text, portal):
    before = yaml.safe_load(text) or {}
    changed = set_key(text, "portal.hold", True)
    meshes = (before.get("portal") or {}).get("meshes")
    expected = {**portal, "hold": True, **({"meshes": meshes} if meshes else {})}
    assert yaml.safe_load(changed) == {**before, "portal": expected}
    assert ("# why" in changed) == ("# why" in text)


def test_a_value_that_is_missing_or_an_alias_is_replaced_in_its_place():
    assert yaml.safe_load(set_key("envs:\nrun: x\n", "envs", {"A": "1"})) == {
        "envs": {"A": "1"}, "run": "x",
    }  # fmt: skip
    changed = yaml.safe_load(set_key("run: &a x\nname: *a\nsetup: y\n", "name", "new"))
    assert changed == {"run": "x", "name": "new", "setup": "y"}


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
