"""Emptying the test database after a test that committed, by deleting the few rows there are.

Django truncates all tables and fills those of content types and permissions again: a quarter of a
second, most of it for files of tables that were empty before.
"""

from __future__ import annotations

from django.db import connection, transaction
from django.test import TransactionTestCase

# The same after each migration, so they may stay.
KEPT = frozenset({"django_content_type", "auth_permission"})
# With more rows in one table, Django's way is the faster one.
FEW = 1_000
# Its rows can't be deleted. It is truncated, without the trigger that refuses this.
APPEND_ONLY = "jobs_auditentry"
_TRIGGER = "ALTER TABLE jobs_auditentry {} TRIGGER no_truncate"

_empty_as_django_does = TransactionTestCase._fixture_teardown


def empty_tables(test: TransactionTestCase) -> None:
    """Leave no rows behind, in place of `TransactionTestCase._fixture_teardown`."""
    if not _deleted_few():
        with connection.cursor() as cursor:
            cursor.execute(_TRIGGER.format("DISABLE"))
            _empty_as_django_does(test)
            cursor.execute(_TRIGGER.format("ENABLE"))


def _deleted_few() -> bool:
    """Delete all rows, unless there are many. Return whether that was done."""
    tables = sorted({*connection.introspection.django_table_names()} - KEPT)
    names = [connection.ops.quote_name(table) for table in tables]
    some = [f"SELECT '{name}', count(*) FROM (SELECT FROM {name} LIMIT {FEW}) t" for name in names]
    with transaction.atomic(), connection.cursor() as cursor:
        # Waits, as TRUNCATE does, for transactions that still write.
        cursor.execute(f"LOCK TABLE {', '.join(names)} IN EXCLUSIVE MODE")
        cursor.execute(" UNION ALL ".join(some))
        rows = dict(cursor.fetchall())
        if max(rows.values()) == FEW:
            return False
        if filled := [name for name in names if rows[name]]:
            cursor.execute("; ".join(_emptying(name) for name in filled))
    return True


def _emptying(name: str) -> str:
    if APPEND_ONLY not in name:
        return f"DELETE FROM {name}"
    return "; ".join([_TRIGGER.format("DISABLE"), f"TRUNCATE {name}", _TRIGGER.format("ENABLE")])
