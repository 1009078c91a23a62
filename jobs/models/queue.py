"""Queues of jobs: `portal.queue` names one."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from jobs.models.pool import Pool
from jobs.models.project import SLUG_PATTERN

DEFAULT_QUEUE = "default"


class Queue(models.Model):
    """A queue. In one pool, jobs of a higher `rank` come before jobs of a lower one."""

    name = models.CharField(
        max_length=39, unique=True, validators=[RegexValidator(rf"\A{SLUG_PATTERN}\Z")]
    )
    rank = models.IntegerField(default=0)
    # None: its jobs share all machines of their backend.
    pool = models.ForeignKey(
        Pool, on_delete=models.PROTECT, related_name="queues", null=True, blank=True
    )

    # Whether all its jobs are preemptible, and not only those with `portal.preemptible`.
    preemptible = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.name
