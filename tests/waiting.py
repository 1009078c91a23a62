"""Waiting for a condition with a deadline, instead of sleeping for a guess."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import connection


def eventually(condition: Callable[[], object], *, timeout_s: float = 20) -> bool:
    """Whether `condition` came true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def a_process_waits_for_a_lock(count: int = 1) -> bool:
    """Whether that many sessions of the test's database wait for another transaction's lock."""
    with connection.cursor() as cursor:
        # Within a transaction sessions that began after the last look are not seen.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) "
            "WHERE NOT granted AND datname = current_database()"
        )
        return bool(cursor.fetchone()[0] >= count)
