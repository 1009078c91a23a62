"""The stages of an attempt with their times: launch, setup, workers, run, tear down."""

from __future__ import annotations

from django.db import models

from jobs.models.attempt import Attempt
from jobs.statuses import StageName


class AttemptStage(models.Model):
    """A stage that has begun. It has ended when `ended_at` is set, and failed when `failure` is."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="stages")
    name = models.CharField(max_length=10, choices=StageName)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    detail = models.CharField(max_length=500, blank=True)
    failure = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["attempt", "name"], name="one_row_per_stage"),
        )

    def __str__(self) -> str:
        return f"{self.name} of {self.attempt}"
