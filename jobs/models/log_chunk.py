"""The index of sealed log: each row names one compressed blob and the lines it holds."""

from django.db import models

from jobs.ground import clock
from jobs.models.attempt import Attempt
from jobs.statuses import LogStore


class LogChunk(models.Model):
    """Lines `first_line` to `first_line + line_count - 1` of an attempt."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="log_chunks")
    first_line = models.BigIntegerField()
    line_count = models.PositiveIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    # The column has its default in the database too: processes of an older release know no store.
    store = models.CharField(
        max_length=8, choices=LogStore, default=LogStore.FILES, db_default=LogStore.FILES
    )
    blob_name = models.CharField(max_length=200)
    raw_bytes = models.PositiveIntegerField()
    stored_bytes = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["attempt", "first_line"], name="one_chunk_per_line"),
        )

    def __str__(self) -> str:
        return f"lines {self.first_line}+{self.line_count} of {self.attempt}"
