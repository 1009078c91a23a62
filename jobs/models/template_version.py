"""Templates of jobs: each version of each is a row, and the newest counts."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from jobs.ground import clock
from jobs.models.project import Project


class TemplateVersionQuerySet(models.QuerySet["TemplateVersion"]):
    """A set of versions of templates."""

    def of_scope(self, project: Project | None) -> Self:
        """Return those of a project; without one, those of the installation."""
        return self.filter(project=project) if project else self.filter(project=None)

    def newest(self) -> Self:
        """Return the newest version of each template, by name."""
        return self.order_by("name", "-number").distinct("name")


class TemplateVersion(models.Model):
    """One version of a template. `source` is its text, header and specification."""

    # None: of the installation, for all projects.
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, null=True, related_name="template_versions"
    )
    name = models.CharField(max_length=60)
    number = models.PositiveIntegerField(default=1)
    source = models.TextField()
    saved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    saved_at = models.DateTimeField(default=clock.now, editable=False)

    objects = TemplateVersionQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["project", "name", "number"], name="one_template_version"
            ),
            models.UniqueConstraint(
                fields=["name", "number"],
                condition=Q(project=None),
                name="one_shared_template_version",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} {self.number} of {self.project or 'all projects'}"
