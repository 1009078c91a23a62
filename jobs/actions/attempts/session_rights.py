"""The rights by which a gateway session may open and go on.

They depend on its attempt, on the token or browser that opened it, and on the role of its user.
"""

from __future__ import annotations

from django.contrib.auth import HASH_SESSION_KEY
from django.utils.crypto import constant_time_compare

from jobs.actions.attempts.open_gateway import refuse_unreachable
from jobs.errors import ConflictError, PermissionDeniedError
from jobs.ground import clock
from jobs.models import ApiToken, GatewaySession, User, UserSession
from jobs.permissions import Actor, require_attach
from jobs.statuses import GatewayKind


def why_not_allowed(session: GatewaySession) -> str:
    """Return why a session must not be opened or continued; "" if it may."""
    token = session.token
    if session.attempt.ended_at is not None:
        return "Its attempt has ended."
    if token is not None and not ApiToken.objects.usable(clock.now()).filter(pk=token.pk).exists():
        return "The token that opened it was revoked, or has expired."
    if session.browser and not _is_signed_in(session.user, session.browser):
        return "The browser that opened it is no longer signed in."
    try:
        require_attach(Actor(session.user, token), session.attempt.job)
        kind = GatewayKind(session.kind)
        refuse_unreachable(session.attempt.job, session.attempt, kind)
    except (ConflictError, PermissionDeniedError) as error:
        return error.message
    return ""


def _is_signed_in(user: User, browser: str) -> bool:
    """Whether the session with this digest of its key still signs in `user`."""
    now = clock.now()
    rows = UserSession.objects.filter(user=user, expire_date__gt=now)
    row = next((each for each in rows if each.digest == browser), None)
    # A new password ends sessions whose rows are still there.
    signed = row.get_decoded().get(HASH_SESSION_KEY, "") if row is not None else ""
    hashes = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    return any(constant_time_compare(signed, each) for each in hashes)
