"""Setting keys as a person would write them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from monarch_client.spec.form_edits import field_of, rename_entry, set_entry, set_field
from monarch_client.spec.places import FormError
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
    ("envs.A", "x: y"),
    ("envs.C", "x\ny"),
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
    assert set_entry(text, ["envs", "B"], None) == "envs:\n  A: 1\n"


def test_a_mark_of_byte_order_does_not_shift_the_change():
    assert set_entry("\ufeffenvs:\n  A: 1\n", ["envs", "A"], "x") == "\ufeffenvs:\n  A: x\n"


def test_a_renamed_entry_keeps_its_place_and_its_value():
    text = "envs: {A: 1, 'B': \"2\"}  # both\n"
    for name in ("x y", "x: y", "on"):
        renamed = rename_entry(text, ["envs", "B"], name)
        assert renamed == f'envs: {{A: 1, "{name}": "2"}}  # both\n'
    assert rename_entry("a:\n  on: |\n    x\n", ["a", "on"], "no") == 'a:\n  "no": |\n    x\n'
    with pytest.raises(FormError, match="cannot be named A"):
        rename_entry(text, ["envs", "B"], "A")


@pytest.mark.parametrize("text", ["portal:\n- a\n", "portal: [a]\n", "portal: a\n", "portal:\n"])
def test_what_a_value_of_another_kind_does_not_have_is_removed_already(text):
    assert set_field(text, "portal.queue", None) == text
    assert set_entry("portal: {a: b}\n", ["portal", 0], None) == "portal: {a: b}\n"
    assert set_entry("portal: [a]\n", ["portal", -1], None) == "portal: [a]\n"


def test_a_list_is_not_replaced_by_a_mapping_nor_a_mapping_by_a_list():
    for text, keys in (("a: [b]\n", ["a", "c"]), ("a: {b: c}\n", ["a", 0])):
        with pytest.raises(FormError, match="a list cannot become a mapping"):
            set_entry(text, keys, "x")


# The value of an entry in every style that YAML has, and what follows its colon.
STYLES = (
    "1", "1.10", "yes", "null", "~", "", "word", "two  words", '"[1, 2]"', "'[1, 2]'", "' x '",
    "'\"quoted\"'", '"a\\nb"', '"a\\u2028b"', "plain\n    of lines", '"quoted\n    of lines"',
    "|\n    a: 1\n\n    B: 2", "|-\n    a\n", "|+\n    a\n\n", ">\n    a\n    b\n", ">2-\n      a",
    "[1, 'x']", "{a: b}", "\n    a: b", "\n  - a", "&x y", "word  # why", "\t# tab",
    "|  # why\n    # no comment",
)  # fmt: skip
NAMES = ("A", "B", "'C d'", '"E:"', "on", "F")
VALUES = (
    "2",
    "",
    " x ",
    "a\nb\n",
    "\n",
    "null",
    "[1, 2]",
    '"q"',
    "# c",
    "a: b",
    "\u2028",
    "\x85\r",
    "\t a\n",
    "&x",
)
Entries = list[tuple[str, str]]


@st.composite
def mappings(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Return a text with a mapping `envs` between other keys, and the names in it."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    styles = [draw(st.sampled_from(STYLES)) for _ in names]
    lines = [
        f"  {name}:{' ' * bool(style)}{style}\n" for name, style in zip(names, styles, strict=True)
    ]
    lines = [draw(st.sampled_from(("", "  # above\n", "\n"))) + line for line in lines]
    before = draw(st.sampled_from(("", "# first\n", "name: x  # kept\nrun: |\n  echo\n\n", "\n")))
    after = draw(st.sampled_from(("", "\nrun: x\n", "# last\n", "  # in it\nportal: {hold: no}\n")))
    text = f"{before}envs:\n{''.join(lines)}{after}"
    return draw(st.sampled_from((text, text.rstrip("\n")))), [each.strip("'\"") for each in names]


@given(mappings(), st.data())
def test_a_change_of_one_entry_leaves_all_others_byte_for_byte(found, data):
    text, names = found
    name = data.draw(st.sampled_from([*names, "NEW"]))
    value = data.draw(st.sampled_from([*VALUES, None]))
    # The last line may be given the end that it lacks.
    before = spelled(text if text.endswith("\n") else f"{text}\n")
    assume(before is not None and spelled(text) is not None)
    try:
        changed = set_entry(text, ["envs", name], value)
    except FormError as error:
        assert "comment" in str(error), text
        return
    expected = dict(before["envs"])
    if value is None:
        expected.pop(name, None)
    else:
        expected[name] = value
    after = spelled(changed if changed.endswith("\n") else f"{changed}\n")
    assert (after.pop("envs", None) or {}) == expected
    assert after == {key: each for key, each in before.items() if key != "envs"}
    start, end = changed_part(text, changed)
    assert not [
        each for each in spans(text) if each[0] != name and start < each[2] and each[1] < end
    ]


def spelled(text: str) -> Any:
    """Return what a text means, with scalars as they were written; None: it is not valid."""
    try:
        return yaml.load(text, Loader=yaml.BaseLoader) or {}
    except yaml.YAMLError:
        return None


def changed_part(text: str, changed: str) -> tuple[int, int]:
    """Return the begin and end of what has changed."""
    most = min(len(text), len(changed))
    start = next((at for at in range(most) if text[at] != changed[at]), most)
    most -= start
    same = next((at for at in range(most) if text[-1 - at] != changed[-1 - at]), most)
    return start, len(text) - same


def spans(text: str) -> list[tuple[str, int, int]]:
    """Return the name, begin and end of each entry of `envs`."""
    envs = next(value for key, value in yaml.compose(text).value if key.value == "envs")
    found = []
    for key, value in envs.value:
        start = key.start_mark.index
        found.append((key.value, start, len(text[: value.end_mark.index].rstrip())))
    return found
