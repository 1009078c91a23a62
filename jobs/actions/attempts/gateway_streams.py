"""The gateway's changes to rows: who connects, what is connected, who has left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from jobs.actions.attempts.open_gateway import close_session, new_secret
from jobs.actions.attempts.session_rights import why_not_allowed
from jobs.errors import AttemptClosedError, SessionEndedError, SessionRefusedError
from jobs.ground import clock
from jobs.live.channel import publish_on_commit
from jobs.models import Attempt, GatewayHead, GatewaySession, Job
from jobs.models.api_token import token_digest
from jobs.models.gateway_session import AWAY_LIMIT, TICKET_LIFE
from jobs.statuses import GatewayKind, GatewayState

# Renewed at every look of the gateway (`jobs/gateway/process.py`).
HEAD_LEASE_S = 10.0
_RENEW_HEADS = """
UPDATE jobs_gatewayhead SET expires_at = clock_timestamp() + make_interval(secs => %s)
WHERE instance = %s AND attempt_id = ANY(%s)
AND EXISTS (SELECT FROM jobs_attempt AS attempt
            WHERE attempt.id = jobs_gatewayhead.attempt_id AND attempt.ended_at IS NULL)
RETURNING attempt_id
"""
_NOTE_TRAFFIC = """
UPDATE jobs_gatewaysession AS session SET
    state = CASE WHEN session.ended_at IS NULL THEN %s ELSE session.state END,
    seen_at = CASE WHEN session.ended_at IS NULL THEN clock_timestamp() ELSE session.seen_at END,
    bytes_up = session.bytes_up + news.up, bytes_down = session.bytes_down + news.down
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS news(id, up, down)
WHERE session.id = news.id
RETURNING session.id
"""


class SessionEntry(NamedTuple):
    """A session that has connected, with its next secret."""

    session_id: int
    attempt_id: int
    job_id: int
    user_id: int
    secret: str
    kind: GatewayKind


class HeadEntry(NamedTuple):
    """An attempt whose head node has connected."""

    attempt_id: int


class Traffic(NamedTuple):
    """Bytes from the program, and to it, since the last note."""

    up: int
    down: int


def enter_session(secret: str) -> SessionEntry:
    """Connect the session of a ticket or secret, and replace that by a new one.

    SessionRefusedError: there is none. SessionEndedError: it is over, was away for too long, or has
    lost its rights, and ends then.
    """
    digest = token_digest(secret)
    session = _with_opener(Q(secret_digest=digest) | Q(former_digest=digest))
    _refuse_ended(session)
    _refuse_late(session)
    return _enter(session.pk, digest)


@transaction.atomic
def _enter(session_id: int, digest: str) -> SessionEntry:
    rows = GatewaySession.objects.select_for_update(of=("self",)).select_related("attempt__job")
    matching = rows.filter(Q(secret_digest=digest) | Q(former_digest=digest))
    session = matching.filter(pk=session_id, ended_at=None).first()
    if session is None:
        raise SessionRefusedError
    following = new_secret()
    # A ticket is valid once; of a secret, whose successor may be lost on its way, until that is.
    is_ticket = session.state == GatewayState.OPENING
    session.former_digest = "" if is_ticket else digest
    session.secret_digest = token_digest(following)
    session.state = GatewayState.OPEN
    session.seen_at = clock.now()
    session.save(update_fields=["former_digest", "secret_digest", "state", "seen_at"])
    attempt = session.attempt
    publish_on_commit(attempt.job)
    kind = GatewayKind(session.kind)
    return SessionEntry(session.pk, attempt.pk, attempt.job_id, session.user_id, following, kind)


def check_terminal(ticket: str) -> None:
    """Check the ticket of a browser's terminal, which `enter_session` uses up.

    SessionRefusedError: it is none of a shell's, was used or has expired.
    """
    rows = GatewaySession.objects.current().filter(kind=GatewayKind.SSH, state=GatewayState.OPENING)
    if not rows.filter(secret_digest=token_digest(ticket)).exists():
        raise SessionRefusedError
    session = _with_opener(Q(secret_digest=token_digest(ticket)))
    _refuse_ended(session)
    _refuse_late(session)


def _with_opener(condition: Q) -> GatewaySession:
    """Return a session with all that its rights depend on. SessionRefusedError: there is none."""
    rows = GatewaySession.objects.select_related("attempt__job__project", "user", "token")
    session = rows.filter(condition).first()
    if session is None:
        raise SessionRefusedError
    return session


def _refuse_ended(session: GatewaySession) -> None:
    """End a session that may not go on. SessionEndedError: it has ended, now or before."""
    if session.ended_at is not None:
        raise SessionEndedError(session.reason)
    if reason := why_not_allowed(session):
        close_session(session, reason)
        raise SessionEndedError(reason)


def end_without_rights(session_ids: list[int]) -> None:
    """End those of the sessions that may not go on; `jobs/reconcilers/gateway.py` ends all such."""
    rows = GatewaySession.objects.current().filter(pk__in=session_ids)
    for session in rows.select_related("attempt__job__project", "user", "token"):
        if reason := why_not_allowed(session):
            close_session(session, reason)


def _refuse_late(session: GatewaySession) -> None:
    now = clock.now()
    if session.seen_at is None:
        if now - session.created_at > TICKET_LIFE:
            raise SessionRefusedError("This ticket has expired. Request a new session.")
    elif now - session.seen_at > AWAY_LIMIT:
        raise SessionEndedError(away_too_long())


def away_too_long() -> str:
    """Return the reason of a lost session."""
    minutes = AWAY_LIMIT.seconds // 60
    return f"Not connected for more than {minutes} minutes. Start the program again."


def enter_head(token: str) -> HeadEntry:
    """Return the attempt of a runner's token. SessionRefusedError, AttemptClosedError."""
    attempt = Attempt.objects.filter(token_digest=token_digest(token)).first()
    if attempt is None:
        raise SessionRefusedError("This is not the token of an attempt.")
    if attempt.ended_at is not None:
        raise AttemptClosedError
    return HeadEntry(attempt.pk)


def open_attempts(attempt_ids: list[int]) -> set[int]:
    """Return those of the attempts that have not ended."""
    rows = Attempt.objects.filter(pk__in=attempt_ids, ended_at=None)
    return set(rows.values_list("pk", flat=True))


def note_head(attempt_id: int, instance: str, address: str, hello: Mapping[str, Any]) -> None:
    """Store that the head of the attempt is connected to this process of the gateway."""
    GatewayHead.objects.update_or_create(
        attempt_id=attempt_id,
        defaults={
            "instance": instance,
            "address": address,
            "hello": dict(hello),
            "expires_at": clock.now(),
        },
    )
    renew_heads([attempt_id], instance)


def address_of_session(secret: str, instance: str) -> str:
    """Return where the head of a session is connected; "" if here, nowhere, or not reachable."""
    digest = token_digest(secret)
    sessions = GatewaySession.objects.current().filter(
        Q(secret_digest=digest) | Q(former_digest=digest)
    )
    elsewhere = _connected().exclude(instance=instance)
    head = elsewhere.filter(attempt__in=sessions.values("attempt")).first()
    return head.address if head is not None else ""


def address_of_instance(instance: str) -> str:
    """Return where a process is reached that has heads; "" if there is none."""
    head = _connected().filter(instance=instance).first()
    return head.address if head is not None else ""


def heads_elsewhere(attempt_ids: list[int], instance: str) -> set[int]:
    """Return those of the attempts whose heads another process has, and is reached."""
    found = _connected().exclude(instance=instance).exclude(address="")
    return set(found.filter(attempt__in=attempt_ids).values_list("attempt_id", flat=True))


def _connected() -> QuerySet[GatewayHead]:
    return GatewayHead.objects.filter(expires_at__gt=clock.now())


def drop_head(attempt_id: int, instance: str) -> None:
    """Note that the head has left this process; it may be connected to another one by now."""
    GatewayHead.objects.filter(attempt=attempt_id, instance=instance).delete()


def renew_heads(attempt_ids: list[int], instance: str) -> set[int]:
    """Keep the rows of connected heads; return the attempts that go on and are still here."""
    return _ids(_RENEW_HEADS, [HEAD_LEASE_S, instance, attempt_ids])


def note_traffic(news: Mapping[int, Traffic]) -> None:
    """Note that these sessions are connected, with their bytes; of ended ones the bytes alone."""
    ups, downs = [each.up for each in news.values()], [each.down for each in news.values()]
    _ids(_NOTE_TRAFFIC, [GatewayState.OPEN.value, list(news), ups, downs])


def current_sessions(attempt_ids: list[int]) -> dict[int, int]:
    """Return the sessions of these attempts that have not ended, with their attempts."""
    rows = GatewaySession.objects.current().filter(attempt__in=attempt_ids)
    return dict(rows.values_list("pk", "attempt_id"))


def note_away(session_id: int, traffic: Traffic) -> None:
    """Note that the stream of a session has ended."""
    note_traffic({session_id: traffic})
    current = GatewaySession.objects.current().filter(pk=session_id)
    if current.update(state=GatewayState.AWAY):
        publish_on_commit(Job.objects.get(attempts__gateway_sessions=session_id))


def reasons_of(session_ids: list[int]) -> dict[int, str]:
    """Return why these sessions have ended, by id."""
    rows = GatewaySession.objects.filter(pk__in=session_ids)
    return dict(rows.values_list("pk", "reason"))


def leave_session(session_id: int) -> None:
    """End a session that its program has closed."""
    session = GatewaySession.objects.filter(pk=session_id).first()
    if session is not None:
        close_session(session, "Closed by the program.")


def lose_session(session_id: int, attempt_id: int, reason: str) -> None:
    """End a session that its head node gives up, since its program was away for too long."""
    session = GatewaySession.objects.filter(pk=session_id, attempt=attempt_id).first()
    if session is not None:
        close_session(session, reason, GatewayState.LOST)


def _ids(statement: str, parameters: list[Any]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return {row[0] for row in cursor.fetchall()}
