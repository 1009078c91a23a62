"""Quotas: limits on what a project, a person in a project or a queue runs at once."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from jobs.models.pool import Pool
from jobs.models.project import Project
from jobs.models.queue import Queue


class Quota(models.Model):
    """A limit of a queue, of a project, or of each person (or one) in a project.

    `caps` by what is counted: jobs, nodes, gpus, gpus:<TYPE>, usd_per_hour. In `pool` alone, or in
    all together.
    `nominal`, of a project: its own part of them; what it has beyond is borrowed, and can be taken
    back where the pool reclaims. What it does not name is not borrowed.
    """

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="quotas", null=True, blank=True
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="quotas",
        null=True,
        blank=True,
    )
    queue = models.ForeignKey(
        Queue, on_delete=models.CASCADE, related_name="quotas", null=True, blank=True
    )
    pool = models.ForeignKey(
        Pool, on_delete=models.CASCADE, related_name="quotas", null=True, blank=True
    )
    # Of a project: whether it limits each person separately.
    per_person = models.BooleanField(default=False)
    caps = models.JSONField(default=dict)
    nominal = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["project", "user", "queue", "pool", "per_person"],
                nulls_distinct=False,
                name="one_quota_of_each",
            ),
            models.CheckConstraint(
                condition=Q(project__isnull=True) ^ Q(queue__isnull=True),
                name="quota_of_a_project_or_a_queue",
            ),
            models.CheckConstraint(
                condition=Q(per_person=False) | Q(project__isnull=False, user__isnull=True),
                name="each_person_is_of_a_project",
            ),
            models.CheckConstraint(
                condition=Q(user__isnull=True) | Q(project__isnull=False),
                name="person_is_of_a_project",
            ),
        )

    def __str__(self) -> str:
        whose = self.queue or self.user or self.project
        return f"quota of {whose}"

    @property
    def own_part(self) -> dict[str, float]:
        """The nominal share of a project: its caps, unless `nominal` is lower."""
        return {**self.caps, **self.nominal}
