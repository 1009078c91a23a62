"""Stray clusters: those that a backend shows and no row of the portal explains."""

from __future__ import annotations

from django.db import models

from jobs.ground import clock
from jobs.statuses import StrayKind

# `seen` holds the backend's report, and which administrator had the cluster terminated.
ORDERED_BY = "down_ordered_by"


class StrayCluster(models.Model):
    """A stray cluster. Only an administrator can have it terminated."""

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
        """The administrator who had it terminated; "" if none has."""
        return str(self.seen.get(ORDERED_BY, ""))
