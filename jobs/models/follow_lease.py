"""Which follower process reads an attempt's frames: one at a time, and another when it dies."""

from __future__ import annotations

from django.db import models

from jobs.models.attempt import Attempt


class FollowLease(models.Model):
    """Held by `owner` until `expires_at`, which is a moment of the database's clock alone."""

    attempt = models.OneToOneField(
        Attempt, on_delete=models.CASCADE, primary_key=True, related_name="follow_lease"
    )
    owner = models.CharField(max_length=32)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.owner} follows {self.attempt}"
