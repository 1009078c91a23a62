"""How far an attempt's log was looked through for its log policies, and what came of it."""

from django.db import models

from jobs.models.attempt import Attempt


class LogWatch(models.Model):
    """A row of its own: that of the log's head is locked by whoever stores lines.

    `avoided`: nodes that further attempts are to avoid, each {"rank", "host", "infra"}.
    """

    attempt = models.OneToOneField(
        Attempt, on_delete=models.CASCADE, primary_key=True, related_name="log_watch"
    )
    # Lines below this one were looked at.
    next_line = models.BigIntegerField(default=1)
    # Name of a rule -> how many of its lines were told.
    told = models.JSONField(default=dict)
    # The rule because of which the attempt's failure is not tried again.
    no_retry_by = models.CharField(max_length=60, blank=True)
    avoided = models.JSONField(default=list)
    # Its patterns took too long: nothing is looked for any more.
    is_given_up = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"watch over the log of {self.attempt}"
