"""Differences of specifications: lines of two, values of several."""

from __future__ import annotations

from monarch_client.spec.difference import (
    LONGEST_VALUE,
    MOST_FIELDS,
    changed_lines,
    differing_values,
)


def test_changed_lines_have_one_line_around_them():
    before, after = "a\nb\nc\nd\n", "a\nb\nC\nd\n"
    assert changed_lines(before, after) == ["@@ -2,3 +2,3 @@", " b", "-c", "+C", " d"]
    assert changed_lines(before, before) == []
    assert changed_lines(before, "x" * 70_000) is None


def test_values_that_differ_are_listed_by_their_path():
    specs = [
        {"name": "a", "envs": {"LR": "0.1", "SEED": "1"}, "num_nodes": 2, "portal": {}},
        {"name": "a", "envs": {"LR": "0.2", "SEED": "1"}, "num_nodes": 2, "run": [1]},
        {"name": "a", "envs": {"LR": "0.1", "SEED": "1"}, "num_nodes": 4},
    ]
    assert differing_values(specs) == [
        ("envs.LR", ["0.1", "0.2", "0.1"]),
        ("num_nodes", ["2", "2", "4"]),
        ("run", [None, "[1]", None]),
    ]
    assert differing_values(specs[:1]) == []


def test_long_values_and_many_fields_are_cut():
    ((_, (long, _)),) = differing_values([{"run": "x" * 1000}, {"run": "y"}])
    assert long == "x" * LONGEST_VALUE + "…"
    many = {f"E{number}": "1" for number in range(500)}
    assert len(differing_values([{"envs": many}, {}])) == MOST_FIELDS
