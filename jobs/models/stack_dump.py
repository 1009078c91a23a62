"""Where the Python processes of one rank stood when somebody asked."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from django.conf import settings
from django.db import models

from jobs.ground import clock
from jobs.models.attempt import Attempt
from jobs.statuses import StackState

# A runner needs a minute at most, and hears of it within seconds.
ANSWER_WITHIN = timedelta(minutes=2)


class StackDumpQuerySet(models.QuerySet["StackDump"]):
    """Dumps by their state."""

    def open(self) -> Self:
        """Dumps that nobody has answered or given up."""
        return self.filter(state=StackState.ASKED)


class StackDump(models.Model):
    """`processes` are {"pid", "command", "text", "why"}, texts masked; `why`: why there are none.

    `pid`: the one process that was asked for. `left_out`: how many processes are not among them.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="stack_dumps")
    rank = models.PositiveIntegerField()
    pid = models.PositiveIntegerField(null=True, blank=True)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    asked_at = models.DateTimeField(default=clock.now, editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=6, choices=StackState, default=StackState.ASKED)
    why = models.TextField(blank=True)
    processes = models.JSONField(default=list)
    left_out = models.PositiveIntegerField(default=0)

    objects = StackDumpQuerySet.as_manager()

    class Meta:
        constraints = (
            # A rank answers one after the other.
            models.UniqueConstraint(
                fields=["attempt", "rank"],
                condition=models.Q(state=StackState.ASKED),
                name="one_open_stack_dump",
            ),
        )

    def __str__(self) -> str:
        return f"stacks of rank {self.rank} of {self.attempt}"

    @property
    def is_overdue(self) -> bool:
        """Whether no answer is waited for any more, although none has come."""
        return self.state == StackState.ASKED and clock.now() - self.asked_at > ANSWER_WITHIN
