"""Calls that are undone, so that one test can make many of them on the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def undone() -> Iterator[None]:
    """Roll back the block's writes.

    Outside a transaction it does nothing: tests that commit do so because the code under test reads
    in other threads, which would not see the rows of an open transaction.
    """
    if not connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
