"""Locks that make a step the only one on its row, among all workers, for as long as it lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from jobs.background.lock_session import lock_session


class LockSpace(IntEnum):
    """First half of an advisory lock's key; the second is a row's id, or a sum of a name."""

    JOB = 71001
    CLUSTER = 71002
    ATTEMPT_LOG = 71003
    QUEUE = 71004
    ORPHANS = 71011
    BILLING = 71012
    INFRA = 71013
    LOG_POLICIES = 71014
    SCHEDULES = 71015
    PRICES = 71016


@contextmanager
def exclusive(space: LockSpace, row_id: int = 0) -> Iterator[bool]:
    """Lock a row for the block and yield whether that worked; never wait.

    The lock needs no open transaction, so slow calls may be made under it. It is released when the
    process dies, and within `lock_session.LEASE_S` when it hangs or loses the database. A step that
    wakes up after that may run beside another one on its row: its writes are guarded by the status
    and the attempt that it began with, and its requests to a backend can be repeated.
    """
    key = (int(space), row_id % 2**31)
    session = lock_session()
    number = session.take(key)
    try:
        yield number is not None
    finally:
        if number is not None:
            session.give_back(key, number)
