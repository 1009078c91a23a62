"""Many jobs at once, and how many rows of jobs the database has read."""

from __future__ import annotations

from django.db import connection

from jobs.models import Job

_READ = """
SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'jobs_job'
"""


def make_copies(job: Job, count: int) -> None:
    """Create `count` jobs like this one."""
    names = ", ".join(f.column for f in job._meta.concrete_fields if f.column != "id")
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO jobs_job ({names}) SELECT {names} FROM jobs_job,"
            " generate_series(1, %s) WHERE id = %s",
            [count, job.pk],
        )
        cursor.execute("ANALYZE jobs_job")


def rows_read() -> int:
    """Return how many rows of jobs this transaction has read so far."""
    with connection.cursor() as cursor:
        cursor.execute(_READ)
        return int(cursor.fetchone()[0])
