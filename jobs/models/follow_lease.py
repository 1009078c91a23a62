"""Leases of follower processes: one process at a time reads the frames of an attempt."""

from __future__ import annotations

from django.db import models

from jobs.models.attempt import Attempt


class FollowLease(models.Model):
    """A lease of `owner` until `expires_at`, by the clock of the database."""

    attempt = models.OneToOneField(
        Attempt, on_delete=models.CASCADE, primary_key=True, related_name="follow_lease"
    )
    owner = models.CharField(max_length=32)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.owner} follows {self.attempt}"
