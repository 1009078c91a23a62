"""The hosts, procs and actors of an attempt's meshes: as last told, and what failed when."""

from django.db import models

from jobs.models.attempt import Attempt


class MeshTree(models.Model):
    """`latest` is a tree of `jobs.logs.mesh_frames`, `changes` are those of
    `jobs.policies.mesh_changes`, oldest first.
    """

    attempt = models.OneToOneField(
        Attempt, on_delete=models.CASCADE, primary_key=True, related_name="mesh_tree"
    )
    at = models.DateTimeField()
    latest = models.JSONField()
    changes = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"meshes of {self.attempt}"
