"""An array: jobs that were submitted as one, with other values each, and are watched as one."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from jobs.ground import clock
from jobs.models.project import Project


class JobArray(models.Model):
    """What was submitted. `size` is the number of combinations, whatever became of their jobs."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="arrays")
    name = models.CharField(max_length=100)
    source = models.TextField(blank=True)
    # Of each name the list of its values: [["lr", ["1e-4", "3e-4"]]], in their order.
    values = models.JSONField(default=list)
    size = models.PositiveIntegerField()
    # How many of its jobs are on machines at once; None: as many as there is room for.
    max_parallel = models.PositiveIntegerField(null=True, blank=True)
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="arrays"
    )
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        indexes = (models.Index(fields=["project", "name", "-id"], name="array_by_name"),)

    def __str__(self) -> str:
        return f"{self.name} @{self.pk}"
