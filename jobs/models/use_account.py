"""Usage of pools by person and project; older hours weigh less."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from jobs.models.project import Project


class UseAccount(models.Model):
    """The usage of ended attempts: `unit_hours` as of `at` (see `jobs.scheduling.shares`)."""

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
        hours = f"{self.unit_hours:.1f} normalized hours"
        return f"{self.user} in {self.project}: {hours} of {self.pool}"
