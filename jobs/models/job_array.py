"""Job arrays: jobs that were submitted as one, with different values."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from jobs.ground import clock
from jobs.models.project import Project


class JobArray(models.Model):
    """A submitted array. `size` is the number of combinations, also when jobs are deleted."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="arrays")
    name = models.CharField(max_length=100)
    source = models.TextField(blank=True)
    # Each name with its values, in order: [["lr", ["1e-4", "3e-4"]]].
    values = models.JSONField(default=list)
    size = models.PositiveIntegerField()
    # The most jobs that hold machines at once; None: no limit.
    max_parallel = models.PositiveIntegerField(null=True, blank=True)
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="arrays"
    )
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        indexes = (models.Index(fields=["project", "name", "-id"], name="array_by_name"),)

    def __str__(self) -> str:
        return f"{self.name} @{self.pk}"
