"""Changing one key of a specification in place."""

from __future__ import annotations

import pytest
import yaml

from monarch_client.spec.text_edits import line_before_edits, set_key

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


def test_a_mark_of_byte_order_does_not_shift_the_change():
    assert set_key("\ufeffrun: x\nname: old\n", "name", "new") == '\ufeffrun: x\nname: "new"\n'


def test_what_follows_a_changed_key_keeps_its_line():
    text = "envs:\n  A: 1\n  # why\n  B: 2\nrun: x\n"
    changed = set_key(text, "envs", {"A": "1"})
    assert yaml.safe_load(changed) == {"envs": {"A": "1"}, "run": "x"}
    assert changed.split("\n").index("run: x") == text.split("\n").index("run: x")


def test_lines_of_a_changed_text_are_found_in_the_original():
    text = "portal:\n  priority: 5\n  odd: 1\nenvs:\n  A: 1\nrun: x\n"
    changed = set_key(text, "portal.hold", value=True)
    changed = set_key(set_key(changed, "envs", {"B": "2"}), "name", "mine")
    lines = changed.split("\n")
    for line in ("portal:", "  priority: 5", "  odd: 1", "run: x"):
        found = line_before_edits(text, changed, lines.index(line) + 1)
        assert text.split("\n")[found - 1] == line
    for added in ("  hold: true", 'name: "mine"'):
        assert 1 <= line_before_edits(text, changed, lines.index(added) + 1) <= text.count("\n") + 1
