"""One plan counts at a time: a pass over the queue has a number, and its starts compare it.

A pass that was suspended and wakes up finds that there was another since: its starts are void. A
new pass waits for the starts of the old one that are under way, so that it sees all of them.
"""

from __future__ import annotations

from django.db import connection

from jobs.errors import StaleJobError

_RAISE = """
INSERT INTO jobs_planpass (id, number) VALUES (1, 1)
ON CONFLICT (id) DO UPDATE SET number = jobs_planpass.number + 1
RETURNING number
"""
# Many starts may hold the row at once; none may while a pass raises the number.
_READ = "SELECT number FROM jobs_planpass WHERE id = 1 FOR SHARE"


def begin_pass() -> int:
    """Return the number of a new pass; starts of older passes are void from now on."""
    with connection.cursor() as cursor:
        cursor.execute(_RAISE)
        return int(cursor.fetchone()[0])


def require_newest(number: int) -> None:
    """Keep this pass the newest until the transaction is over. StaleJobError: it is not."""
    with connection.cursor() as cursor:
        cursor.execute(_READ)
        row = cursor.fetchone()
    if row is None or row[0] != number:
        raise StaleJobError("There was another pass over the queue since.")
