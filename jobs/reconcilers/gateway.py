"""End gateway sessions that were not ended by their users: unused, lost, or without rights."""

from __future__ import annotations

from datetime import timedelta

from jobs.actions.attempts.gateway_streams import away_too_long
from jobs.actions.attempts.open_gateway import close_session
from jobs.actions.attempts.session_rights import why_not_allowed
from jobs.ground import clock
from jobs.models import GatewaySession
from jobs.models.gateway_session import AWAY_LIMIT, TICKET_LIFE
from jobs.statuses import GatewayState

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
    if reason := why_not_allowed(session):
        close_session(session, reason)
    elif seen_at is None:
        if session.created_at < now - TICKET_LIFE:
            close_session(session, "Its ticket was not used.")
    elif seen_at < now - AWAY_LIMIT:
        close_session(session, away_too_long(), GatewayState.LOST)
    elif seen_at < now - _UNSEEN_AFTER:
        rows.filter(state=GatewayState.OPEN, seen_at=seen_at).update(state=GatewayState.AWAY)
