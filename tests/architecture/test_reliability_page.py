"""docs/explanation/reliability.md names a test for each promise, and those tests exist."""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.source import ROOT, tree_of

PAGE = ROOT / "docs" / "explanation" / "reliability.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def named_tests() -> list[tuple[str, str]]:
    """File and function of every test that the page names."""
    return sorted(set(NAMED.findall(PAGE.read_text())))


@pytest.mark.parametrize(("file", "function"), named_tests(), ids=str)
def test_a_test_that_the_page_names_exists(file, function):
    functions = {
        node.name
        for node in ast.walk(tree_of(ROOT / file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    assert not function or function in functions


def test_every_row_of_the_promises_names_a_test():
    table = PAGE.read_text().partition("## What is promised")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert rows
    assert not [row for row in rows if not NAMED.search(row)]
    # A line written twice is a line that waits for its words.
    assert len(set(rows)) == len(rows)
