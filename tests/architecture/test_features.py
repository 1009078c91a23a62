"""Marks name rows that exist, and the catalogue is complete and in order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import ROOT, at, nodes_of, repository_files, text_of
from tests.feature_table import catalogue

FIRST_TO_LAST = {
    "S0": 9, "S1": 8, "S2": 10, "S3": 6, "S4": 10,
    "P1": 2, "P2": 2, "P3": 4, "P4": 3, "P5": 6, "P6": 3, "P7": 3, "P8": 4, "P9": 3, "P10": 3,
}  # fmt: skip


def files_with_marks() -> list[Path]:
    """List the test files that may mark a feature; the others need not be parsed."""
    return [
        path
        for path in repository_files()
        if path.suffix == ".py"
        and path.is_relative_to(ROOT / "tests")
        and "feature" in text_of(path)
    ]


def marks() -> Iterator[tuple[str, Path, int]]:
    """Yield (id, file, line) of every `mark.feature(...)` in the tests."""
    for path in files_with_marks():
        for node in nodes_of(path):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "feature"
            ):
                texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
                yield from ((text, path, node.lineno) for text in texts if isinstance(text, str))


def test_every_marked_feature_exists() -> None:
    known = set(catalogue())
    offenders = [
        at(path, line, f"marks {feature}, which docs/reference/features.toml does not list")
        for feature, path, line in marks()
        if feature not in known
    ]
    assert not offenders, "\n".join(offenders)


def test_the_catalogue_lists_every_id_once_and_in_order() -> None:
    expected = [f"{group}.{n}" for group, last in FIRST_TO_LAST.items() for n in range(1, last + 1)]
    assert list(catalogue()) == expected


def test_the_written_table_lists_every_id() -> None:
    page = text_of(ROOT / "docs" / "reference" / "features.md")
    rows = re.findall(r"^\| ([SP]\d+\.\d+) \| \d+ \| (?:pass|fail|none) \|$", page, re.MULTILINE)
    assert rows == list(catalogue())
