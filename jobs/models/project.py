"""Projects: namespaces of teams, which own jobs, uploads, members and quotas."""

from __future__ import annotations

from typing import Self

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models

from jobs.ground import clock
from jobs.statuses import ProjectState

SLUG_PATTERN = r"[a-z][a-z0-9-]{0,38}"

# First segments of the portal's own paths, which would hide the pages of a project with that slug.
# tests/integration/web/projects/test_reserved_names.py compares this with the routes.
RESERVED_SLUGS = frozenset(
    {"api", "gateway", "healthz", "readyz", "settings", "sign-in", "sign-out", "static"}
)


class ProjectQuerySet(models.QuerySet["Project"]):
    """A set of projects."""

    def in_state(self, state: ProjectState) -> Self:
        """Return the projects in `state`; each project is in one."""
        if state == ProjectState.DELETED:
            return self.filter(deleted_at__isnull=False)
        is_active = state == ProjectState.ACTIVE
        return self.filter(deleted_at=None, archived_at__isnull=is_active)


class Project(models.Model):
    """The namespace of a team."""

    # A deleted project's is SLUG_ID, which no other project can have.
    slug = models.CharField(
        max_length=60, unique=True, validators=[RegexValidator(rf"\A{SLUG_PATTERN}\Z")]
    )
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    # An archived project is read-only. A deleted one is archived as well, and keeps its records.
    archived_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    # Limits that an administrator of the installation sets. None: no limit.
    max_idle_minutes = models.PositiveIntegerField(null=True, blank=True)
    max_duration_s = models.PositiveIntegerField(null=True, blank=True)
    # Whether laptops may attach to jobs that have a driver of their own.
    laptops_may_attach = models.BooleanField(default=False, db_default=False)

    # Its weight in a contended pool, relative to other projects.
    share_weight = models.FloatField(default=1.0, validators=[MinValueValidator(0.001)])

    objects = ProjectQuerySet.as_manager()

    def __str__(self) -> str:
        return self.slug

    @property
    def state(self) -> ProjectState:
        """Whether the project is active, archived or deleted."""
        if self.deleted_at is not None:
            return ProjectState.DELETED
        return ProjectState.ACTIVE if self.archived_at is None else ProjectState.ARCHIVED
