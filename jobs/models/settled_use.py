"""The final cost of clusters, in rows so short that a month of them is added up at once."""

from django.db import models

from jobs.models.cluster import Cluster
from jobs.models.job import Job
from jobs.models.project import Project
from jobs.models.user import User


class SettledUse(models.Model):
    """The cost of a cluster that one attempt had within one day (UTC), when no bill can follow.

    `jobs.actions.clusters.settle` alone writes it. A cluster without such a row is divided.
    """

    cluster = models.OneToOneField(
        Cluster, on_delete=models.CASCADE, primary_key=True, related_name="settled_use"
    )
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+", db_index=False)
    # Of each node; null where the choices of the job differ in it.
    gpus = models.PositiveIntegerField(null=True, blank=True)
    # A whole number, so that the database may add it up as a double, which takes half as long.
    micro_usd = models.BigIntegerField()
    node_hours = models.FloatField()

    class Meta:
        indexes = (models.Index(fields=["project", "day"], name="settled_use_by_day"),)

    def __str__(self) -> str:
        return f"cost of {self.cluster}"
