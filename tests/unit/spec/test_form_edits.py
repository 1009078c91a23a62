"""Setting keys as a person would write them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import yaml

from monarch_client.spec.form_edits import FormError, field_of, set_field
from tests.each_case import check_each

BLOCK = """\
# who
name: old  # kept
envs:
  # first
  A: "1"  # one
  B: two

run: |
  echo one
  echo two
# end
"""
TEXTS = (
    BLOCK,
    "name: old\nrun: x",
    "{name: old, run: x}",
    "{}",
    "",
    "# only a comment\n",
    "portal:\n  # why\n  priority: 9\n  meshes:\n    a: 1\nrun: x\n",
    "portal: {priority: 9}\nrun: x\n",
    "portal:\nrun: x\n",
    "{run: x, portal: {priority: 9}}",
    "resources:\n  cpus: 4+  # c\n  any_of:\n    - infra: aws\nrun: x\n",
    "a: &x 1\nname: *x\n",
    "name:   spaced\nenvs: {}\nrun: >\n  folded\n  text\nsetup: x",
)
FIELDS: tuple[tuple[str, Any], ...] = (
    ("name", "new"),
    ("name", "yes"),
    ("run", "a\nb\n"),
    ("run", " first\nsecond"),
    ("setup", "a: b #c"),
    ("portal.priority", 80),
    ("portal.retry.max_attempts", 3),
    ("envs", {"A": "9", "C": "x: y"}),
    ("resources.cpus", "8"),
    ("portal.meshes", {"trainers": 2}),
    ("secrets", ["A", "B"]),
)


def content(text: str) -> dict[str, Any]:
    return yaml.safe_load(text) or {}


def with_value(before: dict[str, Any], keys: list[str], value: Any) -> dict[str, Any]:
    below = before.get(keys[0])
    if len(keys) > 1:
        value = with_value(below if isinstance(below, dict) else {}, keys[1:], value)
    return {**before, keys[0]: value}


def test_only_the_field_changes_and_comments_stay():
    def check(text: str, change: tuple[str, Any]) -> None:
        path, value = change
        changed = set_field(text, path, value)
        assert content(changed) == with_value(content(text), path.split("."), value)
        comments = [line for line in text.split("\n") if line.strip().startswith("#")]
        assert all(line in changed.split("\n") for line in comments)

    check_each(itertools.product(TEXTS, FIELDS), check)


def test_a_removed_field_takes_the_mapping_that_it_leaves_empty():
    cases = [
        (BLOCK, "name", BLOCK.replace("name: old  # kept\n", "")),
        (BLOCK, "envs", "# who\nname: old  # kept\n\nrun: |\n  echo one\n  echo two\n# end\n"),
        ("portal:\n  priority: 9\nrun: x\n", "portal.priority", "run: x\n"),
        ("portal: {priority: 9, hold: true}\n", "portal.priority", "portal: {hold: true}\n"),
        ("run: x\n", "portal.priority", "run: x\n"),
    ]
    check_each(cases, lambda text, path, expected: _same(set_field(text, path, None), expected))


def _same(found: str, expected: str) -> None:
    assert found == expected


def test_fields_are_written_in_blocks():
    text = set_field(set_field("name: a\n", "portal.retry.max_attempts", 3), "run", "x\ny\n")
    assert text == "name: a\nportal:\n  retry:\n    max_attempts: 3\nrun: |\n  x\n  y\n"
    assert field_of(text, "portal.retry.max_attempts") == "3"
    assert field_of(text, "run") == "x\ny\n"
    assert field_of(text, "portal.queue") is None


def test_a_change_that_loses_an_anchor_or_a_comment_is_refused():
    cases = [
        ("name: &n a\nrun: *n\n", "name", "b"),
        ("name: &n a\nrun: *n\n", "name", None),
        ("secrets:\n  - A  # first\n  - B\n", "secrets", ["A"]),
        ("run: |  # note\n  a\n", "run", "b\nc\n"),
    ]

    def check(text: str, path: str, value: Any) -> None:
        with pytest.raises(FormError):
            set_field(text, path, value)

    check_each(cases, check)


def test_the_comment_of_a_removed_entry_goes_with_it():
    text = "envs:\n  A: 1\n  B: 2  # two\n"
    assert set_field(text, "envs", {"A": "x"}) == "envs:\n  A: x\n"
