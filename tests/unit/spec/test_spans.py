"""The columns of errors: what the editor underlines and the command line marks."""

from __future__ import annotations

import pytest

from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.spec import JobSpec, SpecCode
from monarch_client.spec.documents import documents_in
from tests.each_case import check_each


def marked(text: str) -> list[str]:
    """Return the part of its line that each error is about."""
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse(text)
    return [_part(text, error) for error in caught.value.errors]


def _part(text: str, error: SpecError) -> str:
    if error.line is None or error.column is None:
        return ""
    end = error.end_column
    return text.split("\n")[error.line - 1][error.column - 1 : end and end - 1]


def test_an_error_is_at_the_key_or_value_that_it_is_about() -> None:
    cases = [
        ("run: x\nnum_node: 2  # name num_node\n", ["num_node"]),
        ("run: x\nnum_nodes: two  # many\n", ["two"]),
        ("name: num_nodes\nrun: x\nportal: {priority: 'high', queue: a}\n", ["'high'"]),
        ("run: x\nenvs: {Ä: ü, B-C: 1}\n", ["B-C", "Ä"]),
        ("run: x\nportal:\n  depends_on: [a, -1]\n", ["-1"]),
        ("run: x\nname: a\nname: b\n", ["name"]),
        ("run: x\nname: [a,\n", [""]),
        ("run: x\nname: !!python/none x\n", ["!!python/none x"]),
        ("run: x\nname: a\x00b\n", ["\x00"]),
    ]

    def check(text: str, expected: list[str]) -> None:
        assert sorted(marked(text)) == sorted(expected)

    check_each(cases, check)


def test_an_object_has_no_columns() -> None:
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse({"run": "x", "num_node": 2})
    assert [(each.line, each.column) for each in caught.value.errors] == [(None, None)]


def test_what_the_portal_finds_in_a_checked_specification_has_its_columns() -> None:
    text = "run: x\nportal: {queue: night}\n"
    error = JobSpec.parse(text).error_at("portal.queue", SpecCode.UNKNOWN_QUEUE, "None.")
    assert _part(text, error) == "night"


def test_columns_are_kept_in_a_later_document_unless_its_line_was_changed() -> None:
    text = "name: a\nrun: x\n---\nname: b\nrun: x\nnum_nodes: two\n"
    first, second = documents_in(text)
    line = second.text.split("\n").index("num_nodes: two") + 1
    found = second.located(SpecError("num_nodes", line, "x", "m", column=12, end_column=15))
    assert _part(text, found) == "two"
    changed = first.located(SpecError("name", 1, "x", "m", column=7), sent='name: "b"\nrun: x\n')
    assert (changed.line, changed.column) == (1, None)


def test_lists_and_mappings_are_marked_from_bracket_to_bracket_or_from_their_begin() -> None:
    text = "name: [a, b]\nnum_nodes: {a: 1} # no\nsetup:\n  - one\n  - two\nrun: [a,\n  b]\n"
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse(text)
    found = {each.path: _part(text, each) for each in caught.value.errors}
    assert found == {"name": "[a, b]", "num_nodes": "{a: 1}", "setup": "- one", "run": "[a,"}
