"""`jobs.ground.clock` alone reads the time: what a process stores, another one compares."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.architecture.source import at, name_of, nodes_of, python_files, root_name

# The clock itself, and backends: they look at files and certificates, which have the host's time.
OWN_TIME = ("jobs/ground/clock.py", "jobs/backends/")
OWN_CLOCKS = {("timezone", "now"), ("datetime", "now"), ("datetime", "utcnow"), ("time", "time")}


def own_clocks(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Yield the lines that read this process's wall clock, by a call or as a default."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and (root_name(node), node.attr) in OWN_CLOCKS:
            yield node.lineno
        elif isinstance(node, ast.keyword) and node.arg in {"auto_now", "auto_now_add"}:
            yield node.value.lineno


def test_no_module_reads_the_clock_of_its_own_machine() -> None:
    offenders = [
        at(path, line, "reads this machine's clock instead of jobs.ground.clock")
        for path in python_files("jobs")
        if not name_of(path).startswith(OWN_TIME)
        for line in own_clocks(nodes_of(path))
    ]
    assert not offenders, "\n".join(offenders)


def test_the_rule_sees_every_way_to_read_it() -> None:
    ways = (
        "timezone.now()",
        "datetime.now(timezone.utc)",
        "time.time()",
        "models.DateTimeField(default=timezone.now)",
        "models.DateTimeField(auto_now_add=True)",
    )
    missed = [way for way in ways if list(own_clocks(ast.walk(ast.parse(way)))) != [1]]
    assert not missed, "\n".join(missed)
