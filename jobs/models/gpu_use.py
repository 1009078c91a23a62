"""The GPU use of attempts over time, as lists show it."""

from __future__ import annotations

from django.db import models

from jobs.models.attempt import Attempt
from jobs.models.job import Job
from jobs.policies.gpu_use import Use


class GpuUse(models.Model):
    """The use of all GPUs of one attempt: `points` of `jobs.policies.gpu_use`.

    Attempts whose hosts report no GPU have no row.
    """

    attempt = models.OneToOneField(
        Attempt, on_delete=models.CASCADE, primary_key=True, related_name="gpu_use"
    )
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="gpu_uses")
    at = models.DateTimeField()
    # The last moment at which one of the GPUs was not idle.
    busy_at = models.DateTimeField()
    points = models.JSONField(default=list)
    step_s = models.FloatField(default=0)

    def __str__(self) -> str:
        return f"GPU use of attempt {self.attempt_id}"

    @property
    def use(self) -> Use:
        """The use as a plain value."""
        return Use(self.at, self.busy_at, self.points, self.step_s)
