"""Idempotency keys of submits, kept for 24 hours."""

from django.conf import settings
from django.db import models

from jobs.ground import clock
from jobs.models.job import Job
from jobs.models.project import Project


class IdempotencyKey(models.Model):
    """One accepted submit. The unique constraint is what makes two racing requests one job."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    key = models.CharField(max_length=255)
    body_digest = models.CharField(max_length=64)
    # The first of those that were made; `job_ids` has all of them where there were several.
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+")
    job_ids = models.JSONField(default=list)
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["user", "project", "key"], name="one_job_per_key"),
        )

    def __str__(self) -> str:
        return self.key
