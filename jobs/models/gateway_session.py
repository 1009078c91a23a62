"""Gateway sessions: programs outside of a job that are attached to its workers, and shells."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from jobs.ground import clock
from jobs.models.api_token import ApiToken
from jobs.models.attempt import Attempt
from jobs.statuses import GatewayKind, GatewayState
from monarch_client.runner.vocabulary.limits import MAX_AWAY_S

TICKET_LIFE = timedelta(seconds=60)
# Monarch's workers keep what they hold for an absent client for longer
# (docs/explanation/gateway.md).
AWAY_LIMIT = timedelta(seconds=MAX_AWAY_S)
ENDED_STATES = (GatewayState.CLOSED, GatewayState.LOST)


class GatewaySessionQuerySet(models.QuerySet["GatewaySession"]):
    """Sessions by state."""

    def current(self) -> Self:
        """Return the sessions that have not ended."""
        return self.filter(ended_at=None)


class GatewaySession(models.Model):
    """A session of one program; a session of the kind SSH reaches nodes and no workers.

    `purpose` is what an SSH session is for, as its user stated it. `secret_digest` is that of its
    ticket until the first connection. `seen_at` is the last moment at which its stream was
    connected; None before the first.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="gateway_sessions")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="gateway_sessions"
    )
    token = models.ForeignKey(ApiToken, on_delete=models.SET_NULL, null=True, related_name="+")
    # The digest of the key of the browser session that opened it, which it does not outlive.
    browser = models.CharField(max_length=64, blank=True, default="", db_default="")
    source = models.CharField(max_length=60, blank=True)
    kind = models.CharField(
        max_length=8,
        choices=GatewayKind,
        default=GatewayKind.ATTACH,
        db_default=GatewayKind.ATTACH.value,
    )
    purpose = models.CharField(max_length=200, blank=True, default="", db_default="")
    state = models.CharField(max_length=8, choices=GatewayState, default=GatewayState.OPENING)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    seen_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=200, blank=True)
    secret_digest = models.CharField(max_length=64, unique=True)
    # The secret before, which is valid until the newer one was used: its message may be lost.
    former_digest = models.CharField(max_length=64, blank=True)
    bytes_up = models.BigIntegerField(default=0)
    bytes_down = models.BigIntegerField(default=0)

    objects = GatewaySessionQuerySet.as_manager()

    class Meta:
        indexes = (
            models.Index(
                fields=["former_digest"],
                condition=~Q(former_digest=""),
                name="gateway_former_secret",
            ),
            models.Index(
                fields=["attempt"], condition=Q(ended_at=None), name="gateway_current_session"
            ),
        )

    def __str__(self) -> str:
        return f"session {self.pk} of {self.attempt}"
