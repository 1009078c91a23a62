"""What a person has used of a pool in a project, with less weight the longer ago it was."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from jobs.models.project import Project


class UseAccount(models.Model):
    """Attempts that have ended: `unit_hours` as they counted at `at` (see scheduling.shares)."""

    pool = models.CharField(max_length=60)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="use")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="use")
    unit_hours = models.FloatField(default=0.0)
    at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["pool", "project", "user"], name="one_account_of_each_person"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} in {self.project}: {self.unit_hours:.1f} unit-hours of {self.pool}"
