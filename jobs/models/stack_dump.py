"""Stack dumps: the stacks of the Python processes of one rank, on request."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from django.conf import settings
from django.db import models

from jobs.ground import clock
from jobs.models.attempt import Attempt
from jobs.statuses import StackState

# A runner needs a minute at most, and receives the request within seconds.
ANSWER_WITHIN = timedelta(minutes=2)


class StackDumpQuerySet(models.QuerySet["StackDump"]):
    """A set of stack dumps."""

    def open(self) -> Self:
        """Return the dumps that the runner has not answered."""
        return self.filter(state=StackState.REQUESTED)


class StackDump(models.Model):
    """A stack dump of one rank.

    `processes` are {"pid", "command", "text", "why"}, texts masked; `why`: why there are none.
    `pid`: the requested process, if one. `left_out`: the number of processes that are missing.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="stack_dumps")
    rank = models.PositiveIntegerField()
    pid = models.PositiveIntegerField(null=True, blank=True)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    asked_at = models.DateTimeField(default=clock.now, editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=6, choices=StackState, default=StackState.REQUESTED)
    why = models.TextField(blank=True)
    processes = models.JSONField(default=list)
    left_out = models.PositiveIntegerField(default=0)

    objects = StackDumpQuerySet.as_manager()

    class Meta:
        constraints = (
            # A rank answers one request at a time.
            models.UniqueConstraint(
                fields=["attempt", "rank"],
                condition=models.Q(state=StackState.REQUESTED),
                name="one_open_stack_dump",
            ),
        )

    def __str__(self) -> str:
        return f"stacks of rank {self.rank} of {self.attempt}"

    @property
    def is_overdue(self) -> bool:
        """Whether the time for an answer is over and none has arrived."""
        return self.state == StackState.REQUESTED and clock.now() - self.asked_at > ANSWER_WITHIN
