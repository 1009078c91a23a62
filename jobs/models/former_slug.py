"""Former slugs of renamed projects: each leads to its project until another one takes it."""

from __future__ import annotations

from django.db import models

from jobs.ground import clock
from jobs.models.project import Project


class FormerSlug(models.Model):
    """An old slug and the project that had it last."""

    slug = models.CharField(max_length=39, primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="former_slugs")
    renamed_at = models.DateTimeField(default=clock.now, editable=False)

    def __str__(self) -> str:
        return self.slug
