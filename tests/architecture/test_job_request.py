"""`JobRequest` is all that the portal reads to decide about a job: these rules find other reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import at, name_of, nodes_of, python_files

# File -> why it reads the specification that is stored with a job.
READERS_OF_SPECIFICATIONS = {
    "jobs/actions/attempts/apply_log_policies.py": "passes it to the backend",
    "jobs/actions/jobs/arrays.py": "runs it again",
    "jobs/actions/jobs/rerun.py": "runs it again",
    "jobs/actions/jobs/submit.py": "completes a child that serves its driver",
    "jobs/readers/comparison.py": "shows differences",
    "jobs/readers/job_page.py": "shows it",
    "jobs/readers/runs.py": "shows the code that it names",
    "jobs/reconcilers/prices.py": "passes it to the backend",
    "jobs/reconcilers/provisioning.py": "passes it to the backend",
}
# Backends receive the whole specification: what they read of it is theirs.
BACKENDS = "jobs/backends/"
# A lookup of the ORM, or a JSON operator in SQL.
LOOKUP = re.compile(r"(\b|_)spec__|\bspec\s*(->|#>|\?)")
# The keys at the top of a stored specification that requests are made of.
KEYS = frozenset({"portal", "resources", "secrets"})


def test_specifications_of_jobs_are_read_where_they_are_passed_on_whole() -> None:
    found = [
        offender
        for path in python_files("jobs")
        if not name_of(path).startswith(BACKENDS)
        for offender in _reads(path)
    ]
    assert not found, "\n".join(found)


def test_no_file_is_excused_that_reads_no_specification() -> None:
    reading = {
        name_of(path)
        for path in python_files("jobs")
        if any(_is_spec_of_a_job(node) for node in nodes_of(path))
    }
    assert not READERS_OF_SPECIFICATIONS.keys() - reading


def _reads(path: Path) -> Iterator[str]:
    is_reader = name_of(path) in READERS_OF_SPECIFICATIONS
    for node in nodes_of(path):
        looked_up = getattr(node, "arg" if isinstance(node, ast.keyword) else "value", None)
        if isinstance(looked_up, str) and LOOKUP.search(looked_up):
            yield at(path, node.lineno, "looks a key up in Job.spec: use a column of JobRequest")
        elif key := _key_of_a_specification(node):
            yield at(path, node.lineno, f"reads {key!r} of a specification: use JobRequest")
        elif not is_reader and _is_spec_of_a_job(node):
            yield at(path, node.lineno, "reads Job.spec: use Job.request")


def _is_spec_of_a_job(node: ast.AST) -> bool:
    """Whether the node is `job.spec`, `attempt.job.spec` or the like."""
    if not isinstance(node, ast.Attribute) or node.attr != "spec":
        return False
    owner = node.value
    return isinstance(owner, ast.Name | ast.Attribute) and ast.unparse(owner).endswith("job")


def _key_of_a_specification(node: ast.AST) -> str:
    """Return the key of `spec["key"]` or `spec.get("key")` that the node reads, else ""."""
    match node:
        case ast.Subscript(value=owner, slice=ast.Constant(value=key), ctx=ast.Load()):
            pass
        case ast.Call(
            func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=key), *_]
        ):
            pass
        case _:
            return ""
    # No other dictionary has the key "portal".
    is_found = key == "portal" or (key in KEYS and ast.unparse(owner).endswith("spec"))
    return str(key) if is_found else ""
