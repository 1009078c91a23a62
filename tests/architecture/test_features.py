"""Marks name rows that exist, and the catalogue is complete and in order."""

from __future__ import annotations

import ast
import re

from tests.architecture.source import ROOT, name_of, repository_files, tree_of
from tests.feature_table import catalogue

FIRST_TO_LAST = {
    "S0": 9, "S1": 8, "S2": 10, "S3": 6, "S4": 10,
    "P1": 2, "P2": 2, "P3": 4, "P4": 3, "P5": 6, "P6": 3, "P7": 3, "P8": 4, "P9": 3, "P10": 3,
}  # fmt: skip


def marked_ids() -> set[tuple[str, str]]:
    """(id, file) of every `mark.feature(...)` in the tests."""
    found = set()
    for path in repository_files():
        if path.suffix != ".py" or not path.is_relative_to(ROOT / "tests"):
            continue
        for node in ast.walk(tree_of(path)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "feature"
            ):
                found |= {(str(a.value), name_of(path)) for a in node.args if _is_text(a)}
    return found


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_every_marked_feature_exists() -> None:
    known = set(catalogue())
    assert {(feature, file) for feature, file in marked_ids() if feature not in known} == set()


def test_the_catalogue_lists_every_id_once_and_in_order() -> None:
    expected = [f"{group}.{n}" for group, last in FIRST_TO_LAST.items() for n in range(1, last + 1)]
    assert list(catalogue()) == expected


def test_the_written_table_lists_every_id() -> None:
    page = (ROOT / "docs" / "reference" / "features.md").read_text()
    rows = re.findall(r"^\| ([SP]\d+\.\d+) \| \d+ \| (?:pass|fail|none) \|$", page, re.MULTILINE)
    assert rows == list(catalogue())
