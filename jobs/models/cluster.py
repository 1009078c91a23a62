"""Clusters: nodes that a backend provides for a project. One may outlive its first job."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from jobs.ground import clock
from jobs.models.project import Project
from jobs.statuses import ClusterStatus


class ClusterQuerySet(models.QuerySet["Cluster"]):
    """Clusters by their next step."""

    def existing(self) -> Self:
        """Return the clusters that may still hold machines."""
        return self.exclude(status=ClusterStatus.GONE)

    def waiting(self) -> Self:
        """Return the idle warm clusters."""
        return self.existing().filter(idle_since__isnull=False, release_requested_at=None)

    def to_tear_down(self) -> Self:
        """Return the clusters to terminate, which still hold machines."""
        return self.existing().filter(release_requested_at__isnull=False)


class Cluster(models.Model):
    """A set of nodes. Its name is never reused."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="clusters")
    # mp<installation>-<random>-<job>-<attempt>: by it alone a cluster is found after a crash (D8).
    name = models.CharField(max_length=60, unique=True)
    backend_name = models.CharField(max_length=30)
    num_nodes = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=ClusterStatus, default=ClusterStatus.STARTING)
    backend_status = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    release_requested_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)

    # What the queue counts it by, whichever job is on it later: from the job that it was made for.
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    queue_name = models.CharField(max_length=60, default="default")
    gpu_type = models.CharField(max_length=80, blank=True)
    gpu_count = models.PositiveIntegerField(default=0)  # of all its nodes
    price_key = models.CharField(max_length=24, blank=True)

    # Where it landed and what it is, in the backend's words, once that is known.
    infra = models.CharField(max_length=100, blank=True)
    resources = models.CharField(max_length=200, blank=True)
    # The backend's own key of this incarnation (SkyPilot's cluster hash).
    backend_key = models.CharField(max_length=64, blank=True)

    # US$: the price of all its nodes for an hour, and what the backend has charged until billed_at.
    usd_per_hour = models.DecimalField(max_digits=20, decimal_places=6, null=True, blank=True)
    usd = models.DecimalField(max_digits=20, decimal_places=6, null=True, blank=True)
    billed_at = models.DateTimeField(null=True, blank=True)

    # Whether it waits for a next job after its last one, and which jobs fit on it.
    is_reusable = models.BooleanField(default=False)
    fingerprint = models.CharField(max_length=64, blank=True)
    idle_since = models.DateTimeField(null=True, blank=True)
    # What happens to it when idle: minutes, then (stop or down), down_after (minutes, or null); the
    # idle minutes that its backend was given, and since when (epoch) it is being stopped.
    idle_policy = models.JSONField(default=dict, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)

    objects = ClusterQuerySet.as_manager()

    class Meta:
        indexes = (
            models.Index(
                fields=["release_requested_at"],
                condition=~Q(status=ClusterStatus.GONE),
                name="cluster_existing",
            ),
            # What a project has spent in a month, without all that it ever had.
            models.Index(fields=["project", "gone_at"], name="cluster_by_end"),
        )

    def __str__(self) -> str:
        return self.name
