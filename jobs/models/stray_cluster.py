"""Clusters that a backend shows and no row of ours explains."""

from __future__ import annotations

from django.db import models

from jobs.ground import clock
from jobs.statuses import StrayKind

# Beside what the backend tells, `seen` keeps which administrator ordered its end.
ORDERED_BY = "down_ordered_by"


class StrayCluster(models.Model):
    """Shown to administrators; never touched unless one of them says so."""

    name = models.CharField(max_length=200)
    backend_name = models.CharField(max_length=30)
    kind = models.CharField(max_length=8, choices=StrayKind)
    first_seen_at = models.DateTimeField(default=clock.now)
    last_seen_at = models.DateTimeField(default=clock.now)
    # What the backend says of it: status, infra, num_nodes, launched_at, usd, usd_per_hour, owner.
    seen = models.JSONField(default=dict)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["backend_name", "name"], name="one_stray_per_name"),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def ordered_by(self) -> str:
        """Who ordered its end; "" while nobody has."""
        return str(self.seen.get(ORDERED_BY, ""))
