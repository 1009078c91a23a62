"""The state of an attempt's log: the next line number, and the last frame of each rank."""

from django.db import models

from jobs.models.attempt import Attempt


class LogHead(models.Model):
    """The head of a log, which ingest locks while it numbers lines and acknowledges frames."""

    attempt = models.OneToOneField(
        Attempt, on_delete=models.CASCADE, primary_key=True, related_name="log_head"
    )
    # The number the next line will get; the first is 1.
    next_line = models.BigIntegerField(default=1)
    # Lines below this one are in sealed chunks, the rest in the tail.
    sealed_before = models.BigIntegerField(default=1)
    # Rank (as text, JSON has no other keys) -> last sequence number stored.
    acked = models.JSONField(default=dict)
    # Rank (as text) -> when its program last wrote a line, in seconds since 1970.
    last_lines = models.JSONField(default=dict, db_default={}, blank=True)
    # The end of a piece of a long or slow line in which a masked value may begin, sealed:
    # {"rank stream": text}; see `jobs.logs.handed.LineMask`.
    open_ends = models.JSONField(default=dict, db_default={}, blank=True)
    # Bytes of text so far, and how many of them are still in the tail.
    raw_bytes = models.BigIntegerField(default=0)
    tail_bytes = models.BigIntegerField(default=0)
    # When retention removed the log. From then on no line of it is shown.
    removed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"log of {self.attempt}"
