"""What an attempt was given of its project's secrets: masked in all that it tells, even if the
project's have changed since.
"""

from __future__ import annotations

from django.db import models

from jobs.ground import clock
from jobs.models.attempt import Attempt


class HandedSecrets(models.Model):
    """One row for each attempt that was given any, stored before they leave the portal."""

    attempt = models.OneToOneField(
        Attempt, on_delete=models.CASCADE, primary_key=True, related_name="handed_secrets"
    )
    # JSON {environment variable: value}, sealed (see jobs/ground/seals.py).
    sealed = models.BinaryField()
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        verbose_name_plural = "handed secrets"

    def __str__(self) -> str:
        return f"secrets of {self.attempt}"
