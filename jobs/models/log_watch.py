"""The progress of log policies in an attempt's log, and what they found."""

from django.db import models

from jobs.models.attempt import Attempt


class LogWatch(models.Model):
    """The log policies of one attempt. Ingest locks the head of the log, and not this row.

    `avoided`: nodes that further attempts are to avoid, each {"rank", "host", "infra"}.
    """

    attempt = models.OneToOneField(
        Attempt, on_delete=models.CASCADE, primary_key=True, related_name="log_watch"
    )
    # Lines below this one were searched.
    next_line = models.BigIntegerField(default=1)
    # Name of a rule -> how many of its lines were reported.
    reported = models.JSONField(default=dict, db_column="told")
    # The rule that excludes a retry after this attempt.
    no_retry_by = models.CharField(max_length=60, blank=True)
    avoided = models.JSONField(default=list)
    # The patterns took too long: the log is not searched any more.
    is_given_up = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"watch over the log of {self.attempt}"
