"""Secrets that attempts received. The portal masks them in logs, also after a secret changes."""

from __future__ import annotations

from django.db import models

from jobs.ground import clock
from jobs.models.attempt import Attempt


class HandedSecrets(models.Model):
    """The secrets of one attempt, stored before they leave the portal."""

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
