"""Making and revoking API tokens."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from jobs.errors import NotFoundError, PermissionDeniedError
from jobs.models import ApiToken, Project
from jobs.models.api_token import token_digest
from jobs.permissions import Actor, Verb, require


def create_token(
    actor: Actor,
    name: str,
    *,
    project: Project | None = None,
    read_only: bool = False,
    days: int | None = None,
) -> tuple[ApiToken, str]:
    """A token of the actor's own, and its secret, which is not kept.

    A token may not make one that reaches further than itself: PermissionDeniedError.
    """
    if project is not None:
        require(actor, Verb.VIEW_PROJECT, project)
    _refuse_widening(actor, project, read_only=read_only)
    secret = ApiToken.new_secret()
    token = ApiToken.objects.create(
        user=actor.user,
        project=project,
        name=name,
        read_only=read_only,
        digest=token_digest(secret),
        expires_at=timezone.now() + timedelta(days=days) if days else None,
    )
    return token, secret


def revoke_token(actor: Actor, token_id: int) -> None:
    """End one of the actor's own tokens at once. NotFoundError for anybody else's."""
    now = timezone.now()
    mine = ApiToken.objects.usable(now).filter(user=actor.user, pk=token_id)
    if not mine.update(revoked_at=now):
        raise NotFoundError(f"You have no usable token {token_id}.")


def _refuse_widening(actor: Actor, project: Project | None, *, read_only: bool) -> None:
    with_token = actor.token
    if with_token is None:
        return
    wider_project = with_token.project_id is not None and (
        project is None or project.pk != with_token.project_id
    )
    if wider_project or (with_token.read_only and not read_only):
        raise PermissionDeniedError(
            "This token may not make one that reaches further than itself; sign in instead."
        )
