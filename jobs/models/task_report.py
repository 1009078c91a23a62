"""The task contexts of a node as last reported."""

from django.db import models

from jobs.models.attempt import Attempt


class TaskReport(models.Model):
    """The task contexts of one rank. `latest` is what `jobs.logs.task_frames` keeps."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="task_reports")
    rank = models.PositiveIntegerField()
    at = models.DateTimeField()
    latest = models.JSONField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["attempt", "rank"], name="one_task_report_per_rank"),
        )

    def __str__(self) -> str:
        return f"task contexts of rank {self.rank} of {self.attempt}"
