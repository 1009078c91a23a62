"""A job: what a user asked for, and where it stands. Only `jobs.lifecycle` writes its status."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from jobs import clock
from jobs.models.project import Project
from jobs.statuses import FINAL_STATUSES, JobKind, JobStatus, StopReason, WaitReason

if TYPE_CHECKING:
    from jobs.models.attempt import Attempt


class JobQuerySet(models.QuerySet["Job"]):
    """Jobs by what has to happen to them next."""

    def in_status(self, *statuses: JobStatus) -> Self:
        """Jobs that stand in one of `statuses`."""
        return self.filter(status__in=statuses)

    def unfinished(self) -> Self:
        """Jobs that have not ended."""
        return self.exclude(status__in=FINAL_STATUSES)

    def startable(self, now: datetime) -> Self:
        """Queued jobs that neither wait for a time nor are held."""
        return self.filter(
            Q(next_try_at=None) | Q(next_try_at__lte=now),
            status=JobStatus.QUEUED,
            held=False,
        )


class Job(models.Model):
    """One submitted job: `spec` is the checked form, `spec_source` the text as it was sent."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="jobs")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=JobKind)
    spec = models.JSONField()
    spec_source = models.TextField(blank=True)
    num_nodes = models.PositiveIntegerField(default=1)
    backend_name = models.CharField(max_length=30)
    queue_name = models.CharField(max_length=60, default="default")
    priority = models.IntegerField(default=50)
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs"
    )
    rerun_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True)

    status = models.CharField(max_length=14, choices=JobStatus, default=JobStatus.QUEUED)
    held = models.BooleanField(default=False)
    wait_reason = models.CharField(max_length=12, choices=WaitReason, blank=True)
    # While STOPPING: why it is being stopped. Once final: why it ended.
    stop_reason = models.CharField(max_length=20, choices=StopReason, blank=True)
    # One sentence that says what happened, one that says what to do about it.
    message = models.TextField(blank=True)
    hint = models.TextField(blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    failure_count = models.PositiveIntegerField(default=0)
    recovery_count = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, blank=True)
    # Seconds by which somebody has extended `portal.max_duration`.
    extended_s = models.PositiveIntegerField(default=0)

    created_at = models.DateTimeField(default=clock.now, editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    stopping_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        indexes = (
            models.Index(fields=["project", "-id"], name="job_table"),
            models.Index(fields=["project", "status", "-id"], name="job_table_by_status"),
            models.Index(
                fields=["-priority", "id"],
                condition=Q(status=JobStatus.QUEUED),
                name="job_queue",
            ),
            models.Index(
                fields=["status", "id"],
                condition=~Q(status__in=sorted(FINAL_STATUSES)),
                name="job_unfinished",
            ),
        )
        constraints = (
            models.CheckConstraint(
                condition=~Q(status__in=sorted(FINAL_STATUSES)) | Q(ended_at__isnull=False),
                name="final_job_has_an_end",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} #{self.pk}"

    @property
    def is_final(self) -> bool:
        """Whether the job has ended for good."""
        return JobStatus(self.status).is_final

    @property
    def latest_attempt(self) -> Attempt | None:
        """The newest attempt, or None while the job has never started."""
        return self.attempts.order_by("-number").first()
