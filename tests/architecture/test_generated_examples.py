"""Generated examples are the same in each run; a search chooses random ones, in all tests."""

from __future__ import annotations

import ast
import os

from hypothesis import settings

from tests.architecture.source import at, nodes_of, python_files

PROFILES = "tests/conftest.py"


def test_examples_are_random_only_where_a_search_is_requested() -> None:
    assert settings.default is not None
    assert settings.default.derandomize is not bool(os.environ.get("SEARCH"))


def test_no_test_decides_by_itself_whether_its_examples_are_random() -> None:
    wrong = [
        at(path, node.value.lineno, f"sets {node.arg}: leave it to {PROFILES}")
        for path in python_files("tests")
        if not path.as_posix().endswith(PROFILES)
        for node in nodes_of(path)
        if isinstance(node, ast.keyword) and node.arg == "derandomize"
    ]
    assert not wrong, "\n".join(wrong)
