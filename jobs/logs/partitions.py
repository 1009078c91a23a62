"""The days of the log tail: partitions for the coming ones, none for those that are sealed.

Nothing depends on it being called in time: a day without a partition goes to the default one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone

from django.db import DatabaseError, connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from jobs.ground import clock

log = logging.getLogger(__name__)

DAYS_AHEAD = 3
# A day may be dropped when no process can still be writing to it.
_KEPT_EMPTY = timedelta(days=2)
# Of several followers one makes and drops days. A number that nothing else here locks.
_LOCK = 0x6D706C67
_PREFIX = "jobs_logblock_"
_DAYS = """
SELECT child.relname FROM pg_inherits
JOIN pg_class AS child ON child.oid = inhrelid
WHERE inhparent = 'jobs_logblock'::regclass AND child.relname <> 'jobs_logblock_default'
"""


def ensure() -> None:
    """Make the partitions of today and the next days; drop old ones that are empty.

    Cheap when there is nothing to do. What a busy table does not allow now is left to next time.
    """
    today = clock.now().date()
    days = _existing()
    for offset in range(DAYS_AHEAD + 1):
        day = today + timedelta(days=offset)
        if day not in days:
            _try(_make, day)
    for day in sorted(days):
        if day < today - _KEPT_EMPTY:
            _try(_drop_if_empty, day)


def _existing() -> set[date]:
    with connection.cursor() as cursor:
        cursor.execute(_DAYS)
        names = [name for (name,) in cursor.fetchall()]
    return {date.fromisoformat(name.removeprefix(_PREFIX).replace("_", "-")) for name in names}


def _table(day: date) -> str:
    return _PREFIX + day.isoformat().replace("-", "_")


def _try(change: Callable[[CursorWrapper, date], None], day: date) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # Writers would queue up behind a change that waits.
            cursor.execute("SET LOCAL lock_timeout = '1s'")
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
            if cursor.fetchone()[0]:
                change(cursor, day)
    except DatabaseError as error:
        context = {"action": "log_partitions", "day": day.isoformat()}
        log.warning("left for next time: %s", error, extra=context)


def _make(cursor: CursorWrapper, day: date) -> None:
    name = connection.ops.quote_name(_table(day))
    begin = datetime.combine(day, time.min, timezone.utc)
    # Made apart and then attached: readers and writers of the other days need not wait.
    cursor.execute(f"CREATE TABLE {name} (LIKE jobs_logblock INCLUDING ALL)")
    # Such a statement takes no parameters.
    attach = sql.SQL(
        "ALTER TABLE jobs_logblock ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})"
    ).format(
        sql.Identifier(_table(day)), begin.isoformat(), (begin + timedelta(days=1)).isoformat()
    )
    cursor.execute(attach)


def _drop_if_empty(cursor: CursorWrapper, day: date) -> None:
    name = connection.ops.quote_name(_table(day))
    cursor.execute(f"SELECT EXISTS (SELECT FROM {name})")  # noqa: S608 - a quoted name
    if cursor.fetchone()[0]:
        return
    # Parent first, as readers and writers lock them.
    cursor.execute("LOCK TABLE ONLY jobs_logblock IN ACCESS EXCLUSIVE MODE")
    cursor.execute(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
    cursor.execute(f"SELECT EXISTS (SELECT FROM {name})")  # noqa: S608
    if not cursor.fetchone()[0]:
        cursor.execute(f"DROP TABLE {name}")
