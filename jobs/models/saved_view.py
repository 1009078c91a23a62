"""Saved views of the job table: a name for a filter and an order."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from jobs.ground import clock
from jobs.models.project import Project

NAME_LIMIT, QUERY_LIMIT = 60, 2000


class SavedView(models.Model):
    """A query of the job table's address. Without `is_shared` only its owner sees it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="saved_views")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views"
    )
    name = models.CharField(max_length=NAME_LIMIT)
    query = models.CharField(max_length=QUERY_LIMIT)
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["project", "owner", "name"], name="one_view_of_a_name_per_owner"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} of {self.project_id}"
