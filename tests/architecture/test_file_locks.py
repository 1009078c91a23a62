"""Locks on files: a job or a stopped process may hold one, so no wait is without limit."""

from __future__ import annotations

import re

from tests.architecture.source import at, matches_in, python_files

LOCKING = re.compile(r"\b(?:flock|lockf)\(\s*\w[^\n]*")


def test_no_lock_on_a_file_is_waited_for_without_limit() -> None:
    assert not [
        at(path, line, f"{match[0]} blocks: see jobs/backends/file_locks.py")
        for path in python_files()
        for line, match in matches_in(path, LOCKING)
        if "LOCK_NB" not in match[0]
    ]
