"""End gateway sessions that were not ended by their users: unused, lost, or without rights."""

from __future__ import annotations

from datetime import timedelta

from jobs.actions.attempts.gateway_streams import away_too_long
from jobs.actions.attempts.open_gateway import close_session, refuse_unreachable
from jobs.errors import ConflictError, PermissionDeniedError
from jobs.ground import clock
from jobs.models import ApiToken, GatewaySession
from jobs.models.gateway_session import AWAY_LIMIT, TICKET_LIFE
from jobs.permissions import Actor, require_attach
from jobs.statuses import GatewayKind, GatewayState

# A gateway process notes every two seconds which sessions are connected: this one has died.
_UNSEEN_AFTER = timedelta(seconds=10)


def due() -> list[int]:
    """Return the sessions that have not ended."""
    return list(GatewaySession.objects.current().values_list("pk", flat=True))


def step(session_id: int) -> None:
    """Handle one session. Safe to repeat."""
    rows = GatewaySession.objects.current().filter(pk=session_id)
    session = rows.select_related("attempt__job__project", "user", "token").first()
    if session is None:
        return
    now = clock.now()
    seen_at = session.seen_at
    if reason := _why_to_close(session):
        close_session(session, reason)
    elif seen_at is None:
        if session.created_at < now - TICKET_LIFE:
            close_session(session, "Its ticket was not used.")
    elif seen_at < now - AWAY_LIMIT:
        close_session(session, away_too_long(), GatewayState.LOST)
    elif seen_at < now - _UNSEEN_AFTER:
        rows.filter(state=GatewayState.OPEN, seen_at=seen_at).update(state=GatewayState.AWAY)


def _why_to_close(session: GatewaySession) -> str:
    """Return why a session may not go on, or ""."""
    token = session.token
    if session.attempt.ended_at is not None:
        return "Its attempt has ended."
    if token is not None and not ApiToken.objects.usable(clock.now()).filter(pk=token.pk).exists():
        return "The token that opened it was revoked, or has expired."
    try:
        require_attach(Actor(session.user, token), session.attempt.job)
        kind = GatewayKind(session.kind)
        refuse_unreachable(session.attempt.job, session.attempt, kind)
    except (ConflictError, PermissionDeniedError) as error:
        return error.message
    return ""
