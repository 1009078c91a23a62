"""Only `jobs.lifecycle` writes a job's status. Workers and clusters have a status of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import name_of, python_files, root_name, tree_of

THE_WRITER = "jobs/lifecycle.py"
# Rows other than jobs that carry a `status`; a write must name one of them to be allowed.
OTHER_OWNERS = ("worker", "cluster")
WRITING_CALLS = {"update", "create", "get_or_create", "update_or_create", "bulk_update"}


def status_writes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name the written thing starts from) of everything that sets a `status`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            yield from _assignments(node)
        elif isinstance(node, ast.Call):
            yield from _calls(node)


def _assignments(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> Iterator[tuple[int, str]]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        if isinstance(target, ast.Attribute) and target.attr == "status":
            yield node.lineno, root_name(target)


def _calls(node: ast.Call) -> Iterator[tuple[int, str]]:
    sets_status = any(keyword.arg == "status" for keyword in node.keywords)
    if isinstance(node.func, ast.Attribute) and node.func.attr in WRITING_CALLS:
        names_status = any(
            isinstance(part, ast.Constant) and part.value == "status" for part in ast.walk(node)
        )
        if sets_status or names_status:
            yield node.lineno, _subject(node.func)
    elif isinstance(node.func, ast.Name):
        if node.func.id == "setattr" and _is_text(node.args[1], "status"):
            yield node.lineno, root_name(node.args[0])
        elif node.func.id == "Job" and sets_status:
            yield node.lineno, "Job"


def _subject(func: ast.Attribute) -> str:
    """`Worker` for `Worker.objects.update`, `workers` for `attempt.workers.filter().update`."""
    names = [part.attr for part in ast.walk(func) if isinstance(part, ast.Attribute)]
    return " ".join([root_name(func), *names])


def _is_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def offences(tree: ast.Module) -> list[int]:
    return [
        line
        for line, subject in status_writes(tree)
        if not any(owner in subject.lower() for owner in OTHER_OWNERS)
    ]


@pytest.mark.parametrize("path", list(python_files("jobs", "monarch_portal")), ids=name_of)
def test_only_lifecycle_writes_the_status_of_a_job(path: Path) -> None:
    if name_of(path) != THE_WRITER:
        assert offences(tree_of(path)) == []


@pytest.mark.parametrize(
    "code",
    [
        "job.status = JobStatus.RUNNING",
        "Job.objects.filter(pk=1).update(status='RUNNING')",
        "project.jobs.update(status='RUNNING')",
        "setattr(job, 'status', 'RUNNING')",
        "Job.objects.bulk_update(rows, ['status'])",
        "Job(status='RUNNING')",
    ],
)
def test_the_rule_sees_every_way_to_write_a_status(code: str) -> None:
    assert offences(ast.parse(code)) == [1]


@pytest.mark.parametrize(
    "code",
    [
        "worker.status = WorkerStatus.READY",
        "attempt.workers.filter(rank=1).update(status='LOST')",
        "Cluster.objects.filter(pk=1).update(status='GONE')",
        "Job.objects.filter(status='RUNNING')",
    ],
)
def test_the_rule_leaves_other_rows_and_reads_alone(code: str) -> None:
    assert offences(ast.parse(code)) == []
