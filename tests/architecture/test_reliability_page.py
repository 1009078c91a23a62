"""docs/explanation/reliability.md names a test for each promise, and those tests exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.architecture.source import ROOT, at, matches_in, nodes_of, text_of

PAGE = ROOT / "docs" / "explanation" / "reliability.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def missing_test(file: str, function: str) -> str:
    """Say what is missing of a test that the page names; "" if it is there."""
    if not (ROOT / file).is_file():
        return f"names {file}, which does not exist"
    if function and function not in names_defined_in(ROOT / file):
        return f"names {function}, which {file} does not define"
    return ""


def names_defined_in(path: Path) -> set[str]:
    """Return the names of all functions and classes of the file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in nodes_of(path) if isinstance(node, kinds)}


def test_a_test_that_the_page_names_exists():
    offenders = [
        at(PAGE, line, missing)
        for line, match in matches_in(PAGE, NAMED)
        if (missing := missing_test(match[1], match[2] or ""))
    ]
    assert not offenders, "\n".join(offenders)


def test_every_row_of_the_promises_names_a_test():
    table = text_of(PAGE).partition("## What is promised")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert rows
    assert not [row for row in rows if not NAMED.search(row)]
    # A line written twice is a line that waits for its words.
    assert len(set(rows)) == len(rows)
