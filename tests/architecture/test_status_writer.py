"""Only `jobs.lifecycle` writes a job's status. Workers and clusters have a status of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.architecture.source import at, name_of, nodes_of, python_files, root_name

THE_WRITER = "jobs/lifecycle.py"
# Rows other than jobs that carry a `status`; a write must name one of them to be allowed.
OTHER_OWNERS = ("worker", "cluster")
WRITING_CALLS = {"update", "create", "get_or_create", "update_or_create", "bulk_update"}


def status_writes(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield (line, name the written thing starts from) of everything that sets a `status`."""
    for node in nodes:
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
    """Return the subject: `Worker` in `Worker.objects.update`, `workers` in `attempt.workers`."""
    names = [part.attr for part in ast.walk(func) if isinstance(part, ast.Attribute)]
    return " ".join([root_name(func), *names])


def _is_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def offences(nodes: Iterable[ast.AST]) -> list[int]:
    """List the lines that write the status of a job."""
    return [
        line
        for line, subject in status_writes(nodes)
        if not any(owner in subject.lower() for owner in OTHER_OWNERS)
    ]


def test_only_lifecycle_writes_the_status_of_a_job() -> None:
    offenders = [
        at(path, line, f"writes the status of a job, which only {THE_WRITER} may")
        for path in python_files("jobs", "monarch_portal")
        if name_of(path) != THE_WRITER
        for line in offences(nodes_of(path))
    ]
    assert not offenders, "\n".join(offenders)


def test_the_rule_sees_every_way_to_write_a_status() -> None:
    ways = (
        "job.status = JobStatus.RUNNING",
        "Job.objects.filter(pk=1).update(status='RUNNING')",
        "project.jobs.update(status='RUNNING')",
        "setattr(job, 'status', 'RUNNING')",
        "Job.objects.bulk_update(rows, ['status'])",
        "Job(status='RUNNING')",
    )
    missed = [way for way in ways if offences(ast.walk(ast.parse(way))) != [1]]
    assert not missed, "\n".join(missed)


def test_the_rule_leaves_other_rows_and_reads_alone() -> None:
    allowed = (
        "worker.status = WorkerStatus.READY",
        "attempt.workers.filter(rank=1).update(status='LOST')",
        "Cluster.objects.filter(pk=1).update(status='GONE')",
        "Job.objects.filter(status='RUNNING')",
    )
    accused = [code for code in allowed if offences(ast.walk(ast.parse(code)))]
    assert not accused, "\n".join(accused)
