"""Runs of schedules: one for each time that was due."""

from __future__ import annotations

from django.db import models

from jobs.ground import clock
from jobs.models.job import Job
from jobs.models.schedule import Schedule
from jobs.statuses import ScheduleOutcome


class ScheduleRun(models.Model):
    """The outcome of one time of a schedule. The row ensures that a time is handled once.

    `slot`: the time that was due, or when a user requested a run.
    """

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="runs")
    slot = models.DateTimeField()
    is_manual = models.BooleanField(default=False)
    outcome = models.CharField(max_length=10, choices=ScheduleOutcome)
    message = models.TextField(blank=True)
    job = models.OneToOneField(
        Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="schedule_run"
    )
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["schedule", "slot"], name="one_run_per_slot"),
        )

    def __str__(self) -> str:
        return f"{self.schedule} at {self.slot}"
