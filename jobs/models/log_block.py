"""The tail of the logs: lines that arrived together and are not sealed into a chunk yet."""

from django.db import models

from jobs.models.attempt import Attempt


class LogBlock(models.Model):
    """Lines `first_line` to `first_line + line_count - 1` of an attempt, at most 64 KiB raw.

    The table is partitioned by the day of `created_at` (see `jobs.logs.partitions`), so that days
    that have been sealed are dropped whole instead of being vacuumed.
    """

    pk = models.CompositePrimaryKey("attempt_id", "first_line", "created_at")
    # No constraint in the database: dropping a day would otherwise lock every attempt. Code that
    # deletes an attempt deletes its log first (`jobs.logs.deletion`).
    attempt = models.ForeignKey(
        Attempt,
        on_delete=models.CASCADE,
        related_name="log_blocks",
        db_constraint=False,
        db_index=False,
    )
    first_line = models.BigIntegerField()
    created_at = models.DateTimeField()
    line_count = models.PositiveIntegerField()
    raw_bytes = models.PositiveIntegerField()
    # Compressed text, one line of it a log line (see `jobs.logs.lines`).
    payload = models.BinaryField()

    class Meta:
        db_table = "jobs_logblock"

    def __str__(self) -> str:
        return f"lines {self.first_line}+{self.line_count} of attempt {self.attempt_id}"
