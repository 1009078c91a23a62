"""The identity of this installation, in one row."""

from __future__ import annotations

import secrets

from django.db import models

from jobs.ground import clock


def _new_key() -> str:
    return secrets.token_hex(3)


class Installation(models.Model):
    """The installation. Its short `key` is a part of the name of each of its clusters."""

    key = models.CharField(max_length=12, unique=True, default=_new_key)
    # The release that last upgraded the database.
    release = models.CharField(max_length=40, blank=True, default="")
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        constraints = (models.CheckConstraint(condition=models.Q(pk=1), name="one_installation"),)

    def __str__(self) -> str:
        return self.key

    @classmethod
    def current(cls) -> Installation:
        """Return the row of this installation; create it on first use."""
        return cls.objects.get_or_create(pk=1)[0]
