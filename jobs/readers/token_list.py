"""A user's own API tokens, without their secrets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobs.ground import clock
from jobs.models import ApiToken
from jobs.permissions import Actor


@dataclass(frozen=True, slots=True)
class TokenView:
    """A token that still works; `project` is empty when it reaches all of the user's projects."""

    id: int
    name: str
    project: str
    read_only: bool
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


def token_list(actor: Actor) -> list[TokenView]:
    """Newest first."""
    usable = ApiToken.objects.usable(clock.now()).filter(user=actor.user)
    return [
        TokenView(
            id=token.pk,
            name=token.name,
            project=token.project.slug if token.project else "",
            read_only=token.read_only,
            created_at=token.created_at,
            expires_at=token.expires_at,
            last_used_at=token.last_used_at,
        )
        for token in usable.select_related("project").order_by("-pk")
    ]
