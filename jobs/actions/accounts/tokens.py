"""Making and revoking API tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction

from jobs.actions.accounts.rights import check_rights_on_commit
from jobs.audit.record import record
from jobs.errors import NotFoundError, PermissionDeniedError
from jobs.ground import clock
from jobs.models import ApiToken, Project
from jobs.models.api_token import token_digest
from jobs.permissions import Actor, Verb, require, require_token_reach


@transaction.atomic
def create_token(
    actor: Actor,
    name: str,
    *,
    project: Project | None = None,
    read_only: bool = False,
    days: int | None = None,
) -> tuple[ApiToken, str]:
    """Create a token of the actor's own; return it and its secret, which is not stored.

    A token may not make one that reaches further than itself: PermissionDeniedError.
    """
    if project is not None:
        require(actor, Verb.VIEW_PROJECT, project)
    expires_at = clock.now() + timedelta(days=days) if days else None
    secret = ApiToken.new_secret()
    token = ApiToken(
        user=actor.user,
        project=project,
        name=name,
        read_only=read_only,
        digest=token_digest(secret),
        expires_at=expires_at,
    )
    require_token_reach(actor, token)
    token.save()
    record(actor, "create_token", token, after=_terms(token))
    return token, secret


@transaction.atomic
def revoke_token(actor: Actor, token_id: int) -> None:
    """End one of the actor's own tokens at once. NotFoundError for those of other users.

    A token that is limited to reading or to a project may end itself only.
    """
    _refuse_ending_others(actor.token, token_id)
    now = clock.now()
    mine = ApiToken.objects.usable(now).filter(user=actor.user, pk=token_id)
    if not mine.update(revoked_at=now):
        raise NotFoundError(f"You have no usable token {token_id}.")
    token = ApiToken.objects.select_related("project").get(pk=token_id)
    record(actor, "revoke_token", token, before=_terms(token))
    check_rights_on_commit(token.user_id)


def _terms(token: ApiToken) -> dict[str, Any]:
    expires_at = token.expires_at and token.expires_at.isoformat()
    return {"read_only": token.read_only, "expires_at": expires_at}


def _refuse_ending_others(with_token: ApiToken | None, token_id: int) -> None:
    if with_token is None or with_token.pk == token_id:
        return
    if with_token.read_only or with_token.project_id is not None:
        raise PermissionDeniedError("This token may end itself only; sign in to end others.")
