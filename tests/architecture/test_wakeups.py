"""`jobs.wakeups` is the only sender of Celery tasks; nobody connects a Django signal."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.source import name_of, python_files, tree_of

SENDING = {"delay", "apply_async", "send_task", "signature"}
THE_SENDER = "jobs/wakeups.py"


@pytest.mark.parametrize("path", list(python_files("jobs", "monarch_portal")), ids=name_of)
def test_only_wakeups_sends_tasks(path: Path) -> None:
    sent = [
        node.lineno
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in SENDING
    ]
    assert sent == [] or name_of(path) == THE_SENDER


@pytest.mark.parametrize("path", list(python_files("jobs", "monarch_portal")), ids=name_of)
def test_nobody_connects_a_django_signal(path: Path) -> None:
    imported = {
        node.module
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    assert imported.isdisjoint({"django.db.models.signals", "django.dispatch"})
