"""The history of jobs: each change, with user, time and address."""

from django.conf import settings
from django.db import models

from jobs.ground import clock
from jobs.models.attempt import Attempt
from jobs.models.job import Job
from jobs.statuses import EventKind, JobStatus


class JobEvent(models.Model):
    """A change of a job, written in the same transaction as the change and never updated."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="events")
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, null=True, blank=True)
    kind = models.CharField(max_length=8, choices=EventKind)
    verb = models.CharField(max_length=40, blank=True)
    old_status = models.CharField(max_length=14, choices=JobStatus, blank=True)
    new_status = models.CharField(max_length=14, choices=JobStatus, blank=True)
    reason = models.CharField(max_length=20, blank=True)
    message = models.TextField(blank=True)
    # The line of the attempt's log that the event is about.
    line = models.BigIntegerField(null=True, blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    source = models.CharField(max_length=60, blank=True)
    at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        indexes = (models.Index(fields=["job", "id"], name="job_history"),)

    def __str__(self) -> str:
        return self.message or f"{self.old_status} -> {self.new_status}"
