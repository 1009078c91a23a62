"""`jobs.clock` alone tells the time: what a process stores, another one compares."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import name_of, python_files, root_name, tree_of

# The clock itself, and backends: they look at files and certificates, which have the host's time.
OWN_TIME = ("jobs/clock.py", "jobs/backends/")
OWN_CLOCKS = {("timezone", "now"), ("datetime", "now"), ("datetime", "utcnow"), ("time", "time")}


def own_clocks(tree: ast.Module) -> Iterator[int]:
    """Lines that read this process's wall clock, by a call or as a default."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (root_name(node), node.attr) in OWN_CLOCKS:
            yield node.lineno
        elif isinstance(node, ast.keyword) and node.arg in {"auto_now", "auto_now_add"}:
            yield node.value.lineno


@pytest.mark.parametrize("path", list(python_files("jobs")), ids=name_of)
def test_nobody_tells_the_time_by_the_clock_of_the_own_machine(path: Path) -> None:
    if not name_of(path).startswith(OWN_TIME):
        assert list(own_clocks(tree_of(path))) == []


@pytest.mark.parametrize(
    "code",
    [
        "timezone.now()",
        "datetime.now(timezone.utc)",
        "time.time()",
        "models.DateTimeField(default=timezone.now)",
        "models.DateTimeField(auto_now_add=True)",
    ],
)
def test_the_rule_sees_every_way_to_read_it(code: str) -> None:
    assert list(own_clocks(ast.parse(code))) == [1]
