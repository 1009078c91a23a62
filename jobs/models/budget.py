"""Monthly budgets of projects. A project without a row has none."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from jobs.ground import clock
from jobs.models.project import Project
from jobs.policies.budgets import WARNS_AT, Terms
from jobs.statuses import OnSpent


def _warns_at() -> list[int]:
    return list(WARNS_AT)


class Budget(models.Model):
    """The budget of a project for each calendar month, set by an administrator."""

    project = models.OneToOneField(
        Project, on_delete=models.CASCADE, primary_key=True, related_name="budget"
    )
    usd = models.DecimalField(max_digits=12, decimal_places=2)
    on_spent = models.CharField(max_length=4, choices=OnSpent, default=OnSpent.HOLD)
    # Percent of the budget at which the portal notifies.
    warn_at = models.JSONField(default=_warns_at)
    set_at = models.DateTimeField(default=clock.now)
    set_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        constraints = (
            models.CheckConstraint(condition=models.Q(usd__gt=0), name="budget_above_nothing"),
        )

    def __str__(self) -> str:
        return f"{self.usd} for {self.project_id}"

    @property
    def terms(self) -> Terms:
        """The budget as a plain value."""
        return Terms(self.usd, OnSpent(self.on_spent), tuple(self.warn_at))
