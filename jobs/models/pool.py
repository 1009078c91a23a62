"""Pools: parts of a backend's machines that queues share, as an administrator defines them."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from jobs.models.project import SLUG_PATTERN

DAY_S = 24 * 3600
WEEK_S = 7 * DAY_S


class Pool(models.Model):
    """A part of a backend's machines. Queues without a pool share all machines of a backend."""

    name = models.CharField(
        max_length=39, unique=True, validators=[RegexValidator(rf"\A{SLUG_PATTERN}\Z")]
    )
    backend_name = models.CharField(max_length=30)
    # The size, as far as it is limited: {"nodes": 8, "gpus:H100": 64}.
    caps = models.JSONField(default=dict, blank=True)
    # Seconds after which a job precedes jobs of its project with a higher priority.
    patience_s = models.PositiveIntegerField(default=DAY_S)
    # Seconds after which usage counts half.
    half_life_s = models.PositiveIntegerField(default=WEEK_S)
    # Whether preemptible jobs are stopped for others: for a project within its nominal part those
    # of who borrows beyond theirs; for a queue those of a lower one.
    reclaim = models.BooleanField(default=False)
    preempts_by_rank = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.name
