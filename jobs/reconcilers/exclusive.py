"""Locks that make a step the only one on its row, among all workers, for as long as it lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from jobs.reconcilers.lock_session import lock_session


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
    """Whether nobody else is at this row; never waits.

    The lock needs no open transaction, so that slow calls may be made under it. It goes when the
    process dies, and within `lock_session.LEASE_S` when it hangs or loses the database. A step that
    wakes up after that may meet another one on its row: what it writes is guarded by the status and
    the attempt it began with, and what it asks of a backend can be asked twice.
    """
    key = (int(space), row_id % 2**31)
    session = lock_session()
    number = session.take(key)
    try:
        yield number is not None
    finally:
        if number is not None:
            session.give_back(key, number)
