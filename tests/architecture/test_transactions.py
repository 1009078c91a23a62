"""Transactions live in actions (and in the few places below them that write): nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.source import name_of, python_files, tree_of

# Who may open one: an action is atomic; a move, a page of log lines and a step are single writes.
MAY_OPEN = ("jobs/actions/", "jobs/lifecycle.py", "jobs/logs/", "jobs/reconcilers/")
# What lasts: never while a transaction is open.
SLOW = {"launch", "tear_down", "leftovers", "observe"}


def is_atomic(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text.startswith(("transaction.atomic", "atomic("))


@pytest.mark.parametrize("path", list(python_files("jobs", "monarch_portal")), ids=name_of)
def test_only_what_writes_opens_a_transaction(path: Path) -> None:
    opened = [
        node.lineno
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "transaction.atomic"
    ]
    assert opened == [] or name_of(path).startswith(MAY_OPEN)


@pytest.mark.parametrize("path", list(python_files("jobs")), ids=name_of)
def test_no_backend_is_called_while_a_transaction_is_open(path: Path) -> None:
    blocks = [
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.With) and any(is_atomic(item.context_expr) for item in node.items)
    ]
    slow = [
        call.lineno
        for block in blocks
        for call in ast.walk(block)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in SLOW
    ]
    assert slow == []
