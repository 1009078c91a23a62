"""`jobs.background.hints` alone sends Celery tasks; no module connects a Django signal."""

from __future__ import annotations

import ast

from tests.architecture.source import at, name_of, nodes_of, python_files

SENDING = {"delay", "apply_async", "send_task", "signature"}
THE_SENDER = "jobs/background/hints.py"
SIGNALS = {"django.db.models.signals", "django.dispatch"}


def test_only_hints_sends_tasks() -> None:
    offenders = [
        at(path, node.lineno, f"calls {node.func.attr}: only {THE_SENDER} sends tasks")
        for path in python_files("jobs", "monarch_portal")
        if name_of(path) != THE_SENDER
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in SENDING
    ]
    assert not offenders, "\n".join(offenders)


def test_no_module_connects_a_django_signal() -> None:
    offenders = [
        at(path, node.lineno, f"imports {node.module}")
        for path in python_files("jobs", "monarch_portal")
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom) and node.module in SIGNALS
    ]
    assert not offenders, "\n".join(offenders)
