"""Locks that make a step the only one on its row, among all workers, for as long as it lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from django.db import connection


class LockSpace(IntEnum):
    """First half of an advisory lock's key; the second is a row's id."""

    JOB = 71001
    CLUSTER = 71002
    ATTEMPT_LOG = 71003
    QUEUE = 71004


@contextmanager
def exclusive(space: LockSpace, row_id: int = 0) -> Iterator[bool]:
    """Whether nobody else is at this row; never waits.

    The lock belongs to the database session: it needs no open transaction, so that slow calls may
    be made under it, and it goes when the process dies.
    """
    key = [int(space), row_id % 2**31]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
        acquired = bool(cursor.fetchone()[0])
    try:
        yield acquired
    finally:
        if acquired:
            _release(key)


def _release(key: list[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)
