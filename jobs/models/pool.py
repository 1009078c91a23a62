"""Machines that are shared out by one queue's order: what an administrator says of them."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from jobs.models.project import SLUG_PATTERN

DAY_S = 24 * 3600
WEEK_S = 7 * DAY_S


class Pool(models.Model):
    """Machines of one backend. Jobs of a queue without a pool share what their backend has."""

    name = models.CharField(
        max_length=39, unique=True, validators=[RegexValidator(rf"\A{SLUG_PATTERN}\Z")]
    )
    backend_name = models.CharField(max_length=30)
    # How much there is, as far as it is limited: {"nodes": 8, "gpus:H100": 64}.
    caps = models.JSONField(default=dict, blank=True)
    # After how long a job comes before those of its project with a higher priority.
    patience_s = models.PositiveIntegerField(default=DAY_S)
    # After how long an hour of use counts half.
    half_life_s = models.PositiveIntegerField(default=WEEK_S)
    # Whether preemptible jobs are stopped for others: for a project within its nominal part those
    # of who borrows beyond theirs; for a queue those of a lower one.
    reclaim = models.BooleanField(default=False)
    preempts_by_rank = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.name
