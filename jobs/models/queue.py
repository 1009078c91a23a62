"""Where jobs wait: `portal.queue` names one."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from jobs.models.pool import Pool
from jobs.models.project import SLUG_PATTERN

DEFAULT_QUEUE = "default"


class Queue(models.Model):
    """All jobs of a higher `rank` come before those of a lower one in the same pool."""

    name = models.CharField(
        max_length=39, unique=True, validators=[RegexValidator(rf"\A{SLUG_PATTERN}\Z")]
    )
    rank = models.IntegerField(default=0)
    # None: its jobs share what the backend they go to has.
    pool = models.ForeignKey(
        Pool, on_delete=models.PROTECT, related_name="queues", null=True, blank=True
    )

    # Whether all its jobs may be stopped for others, and not only those that say so themselves.
    preemptible = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.name
