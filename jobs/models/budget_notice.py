"""A threshold of a project's budget that was crossed in a month: told once."""

from __future__ import annotations

from django.db import models

from jobs.ground import clock
from jobs.models.project import Project


class BudgetNotice(models.Model):
    """`usd` of `budget_usd` were spent when it was seen."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="budget_notices")
    # Its first day, UTC.
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
