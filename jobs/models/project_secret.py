"""A project's secret: written once, handed to jobs that name it, never shown again."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from jobs.ground import clock
from jobs.models.project import Project


class ProjectSecret(models.Model):
    """`name` is an environment variable's; `ciphertext` is sealed with the installation's keys."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=100)
    ciphertext = models.BinaryField()
    # Shorter values are not masked in logs: they would be found in every other word.
    is_masked = models.BooleanField(default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=clock.now, editable=False)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    updated_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["project", "name"], name="one_secret_per_name"),
        )

    def __str__(self) -> str:
        return f"{self.name} of {self.project}"
