"""Transactions live in actions (and in the few places below them that write): nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import at, name_of, nodes_of, python_files

# Who may open one: an action is atomic; a move, a page of log lines and a step are single writes.
MAY_OPEN = ("jobs/actions/", "jobs/lifecycle.py", "jobs/logs/", "jobs/reconcilers/")
# What lasts: never while a transaction is open.
SLOW = {"launch", "tear_down", "leftovers", "observe"}


def is_atomic(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text.startswith(("transaction.atomic", "atomic("))


def atomic_blocks(path: Path) -> Iterator[ast.With]:
    """Yield every `with` statement of the file that opens a transaction."""
    for node in nodes_of(path):
        if isinstance(node, ast.With) and any(is_atomic(item.context_expr) for item in node.items):
            yield node


def test_only_what_writes_opens_a_transaction() -> None:
    offenders = [
        at(path, node.lineno, f"opens a transaction, which only {', '.join(MAY_OPEN)} may")
        for path in python_files("jobs", "monarch_portal")
        if not name_of(path).startswith(MAY_OPEN)
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute)
        and node.attr == "atomic"
        and isinstance(node.value, ast.Name)
        and node.value.id == "transaction"
    ]
    assert not offenders, "\n".join(offenders)


def test_no_backend_is_called_while_a_transaction_is_open() -> None:
    offenders = [
        at(path, call.lineno, f"calls {call.func.attr} while a transaction is open")
        for path in python_files("jobs")
        for block in atomic_blocks(path)
        for call in ast.walk(block)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in SLOW
    ]
    assert not offenders, "\n".join(offenders)
