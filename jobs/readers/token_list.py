"""A user's own API tokens, without their secrets."""

from __future__ import annotations

from jobs.ground import clock
from jobs.models import ApiToken
from jobs.permissions import Actor
from monarch_client.wire.account import Token


def token_list(actor: Actor) -> list[Token]:
    """List the tokens that are still valid, newest first."""
    usable = ApiToken.objects.usable(clock.now()).filter(user=actor.user)
    return [
        Token(
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
