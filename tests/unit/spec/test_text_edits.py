"""Changing one key of a specification in place."""

from __future__ import annotations

import pytest
import yaml

from monarch_client.spec.text_edits import set_key

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
