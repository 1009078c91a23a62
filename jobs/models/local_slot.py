"""Leases of loopback networks (and, as root, of user ids) for clusters of the local backend."""

from django.db import models

from jobs.models.cluster import Cluster


class LocalSlot(models.Model):
    """Slot `number` is one 127.x.y.0/24; the row is deleted when its cluster is gone."""

    number = models.PositiveIntegerField(unique=True)
    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="local_slot")
    leased_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"slot {self.number}"
