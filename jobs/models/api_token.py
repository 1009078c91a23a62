"""Tokens for the API. Only a digest is stored; the token itself is shown once."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from jobs.ground import clock
from jobs.models.project import Project
from monarch_client.runner.delivery.portal_proof import digest_of

TOKEN_PREFIX = "mpt_"  # noqa: S105 - the public prefix by which scanners know our tokens


def token_digest(token: str) -> str:
    """Return the SHA-256 of a token in hex. Tokens are random: a slow hash would add nothing."""
    return digest_of(token)


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """API tokens by state."""

    def usable(self, now: datetime) -> Self:
        """Return the tokens that are neither revoked nor expired at `now`."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)


class ApiToken(models.Model):
    """A user's token, for all projects of the user or for `project` alone."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, blank=True)
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    read_only = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiTokenQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name

    def covers(self, other: ApiToken) -> bool:
        """Whether `other` reaches no further and lasts no longer than this token."""
        in_project = self.project_id in {None, other.project_id}
        in_time = self.expires_at is None or (
            other.expires_at is not None and other.expires_at <= self.expires_at
        )
        return in_project and in_time and (other.read_only or not self.read_only)

    @staticmethod
    def new_secret() -> str:
        """Return a new random token."""
        return TOKEN_PREFIX + secrets.token_urlsafe(32)
