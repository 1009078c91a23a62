"""Metrics that programs report in their output, by name and rank."""

from __future__ import annotations

from django.db import models

from jobs.models.attempt import Attempt


class ProgramSeries(models.Model):
    """The history of one metric on one rank: points of `jobs.policies.program_metrics`.

    `old` is long: it is rewritten when `recent` is full, not with every report.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="program_series")
    rank = models.PositiveIntegerField()
    name = models.CharField(max_length=64)
    # The last report; a value is null if it is not finite.
    at = models.FloatField()
    step = models.BigIntegerField()
    value = models.FloatField(null=True)
    lowest = models.FloatField(null=True)
    highest = models.FloatField(null=True)
    stride = models.PositiveBigIntegerField(default=1)
    recent = models.JSONField(default=list)
    old = models.JSONField(default=list)

    class Meta:
        verbose_name_plural = "program series"
        constraints = (
            models.UniqueConstraint(
                fields=["attempt", "rank", "name"], name="one_program_series_per_rank_and_name"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} of rank {self.rank} of {self.attempt}"
