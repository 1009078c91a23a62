"""A team's space: jobs, uploads, members and, later, quotas belong to one."""

from __future__ import annotations

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models

from jobs import clock

SLUG_PATTERN = r"[a-z][a-z0-9-]{0,38}"

# First segments of the portal's own addresses: a project of such a name would hide behind them.
# tests/integration/web/test_reserved_names.py compares this with the routes.
RESERVED_SLUGS = frozenset(
    {"api", "healthz", "readyz", "settings", "sign-in", "sign-out", "static"}
)


class Project(models.Model):
    """Everything a team owns hangs on its project."""

    slug = models.CharField(
        max_length=39, unique=True, validators=[RegexValidator(rf"\A{SLUG_PATTERN}\Z")]
    )
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    # Set by an administrator of the installation; no job asks for more. None: no limit.
    max_idle_minutes = models.PositiveIntegerField(null=True, blank=True)
    max_duration_s = models.PositiveIntegerField(null=True, blank=True)

    # How much of a pool it may have beside others who want it, as a proportion.
    share_weight = models.FloatField(default=1.0, validators=[MinValueValidator(0.001)])

    def __str__(self) -> str:
        return self.slug
