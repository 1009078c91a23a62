"""Hosts, procs and actors of an attempt's meshes as last reported, and their failures."""

from django.db import models

from jobs.models.attempt import Attempt


class MeshTree(models.Model):
    """The meshes of one attempt.

    `latest` is a tree of `jobs.logs.mesh_frames`. `changes` are those of
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
