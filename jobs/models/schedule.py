"""Schedules: job specifications that are submitted at the times of a cron expression."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from jobs.ground import clock
from jobs.models.project import Project
from jobs.statuses import CatchUpPolicy, OverlapPolicy


class ScheduleQuerySet(models.QuerySet["Schedule"]):
    """A set of schedules."""

    def due(self, now: datetime) -> Self:
        """Return the schedules whose `next_at` has come; that of a paused one is NULL."""
        return self.filter(next_at__lte=now)


class Schedule(models.Model):
    """A schedule: `spec` is the checked specification, `spec_source` the text as it was sent."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="schedules")
    name = models.CharField(max_length=60)
    spec = models.JSONField()
    spec_source = models.TextField(blank=True)
    cron = models.CharField(max_length=100)
    zone = models.CharField(max_length=64, default="UTC")
    overlap = models.CharField(max_length=8, choices=OverlapPolicy, default=OverlapPolicy.SKIP)
    catch_up = models.CharField(max_length=8, choices=CatchUpPolicy, default=CatchUpPolicy.LATEST)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="schedules"
    )
    paused = models.BooleanField(default=False)
    # Why it is paused, or what went wrong the last time; one sentence.
    message = models.TextField(blank=True)
    # The first time that is not handled yet. None: it is paused, or no time follows.
    next_at = models.DateTimeField(null=True, blank=True)
    # Grows with every change by a user: a step that began with an older one does nothing.
    revision = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    updated_at = models.DateTimeField(default=clock.now)

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        indexes = (
            models.Index(
                fields=["next_at"], condition=Q(next_at__isnull=False), name="schedule_due"
            ),
        )
        constraints = (
            models.UniqueConstraint(fields=["project", "name"], name="one_schedule_per_name"),
            models.CheckConstraint(
                condition=Q(paused=False) | Q(next_at__isnull=True),
                name="paused_schedule_is_never_due",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} of {self.project}"
