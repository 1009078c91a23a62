"""Notices of crossed budget thresholds: one for each threshold and month."""

from __future__ import annotations

from django.db import models

from jobs.ground import clock
from jobs.models.project import Project


class BudgetNotice(models.Model):
    """A crossed threshold: `usd` of `budget_usd` were spent when the portal noticed."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="budget_notices")
    # The first day of the month, UTC.
    month = models.DateField()
    threshold = models.PositiveSmallIntegerField()
    usd = models.DecimalField(max_digits=20, decimal_places=6)
    budget_usd = models.DecimalField(max_digits=12, decimal_places=2)
    at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["project", "month", "threshold"], name="one_notice_per_threshold"
            ),
        )

    def __str__(self) -> str:
        return f"{self.threshold} % in {self.month:%Y-%m}"
