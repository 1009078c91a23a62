"""The gateway sessions of a job."""

from __future__ import annotations

from jobs.models import GatewayHead, GatewaySession, Job
from jobs.permissions import Actor, job_for, verb_to_detach, verbs_of
from monarch_client.wire import gateway as wire

# Current ones first, then those that ended last.
MOST_SHOWN = 50


def gateway_sessions(actor: Actor, job: Job) -> list[wire.GatewaySession]:
    """Return the sessions of `job`: current ones first, then the latest that have ended."""
    rows = GatewaySession.objects.filter(attempt__job=job).select_related("attempt", "user")
    current = list(rows.current().order_by("-pk"))
    ended = rows.exclude(ended_at=None).order_by("-ended_at")[: MOST_SHOWN - len(current)]
    return _views(actor, job, [*current, *ended])


def attached_programs(actor: Actor, slug: str, job_id: int) -> list[wire.GatewaySession]:
    """Return the current sessions of a job, newest first. NotFoundError as for `job_for`."""
    rows = GatewaySession.objects.current().filter(attempt__job=job_id)
    found = list(rows.select_related("attempt", "user").order_by("-pk"))
    return _views(actor, job_for(actor, slug, job_id), found) if found else []


def versions_of(attempt_id: int) -> tuple[str, str]:
    """Return Python and torchmonarch of the attempt's workers, "" as long as they are unknown."""
    head = GatewayHead.objects.filter(attempt=attempt_id).first()
    hello = head.hello if head is not None else {}
    return str(hello.get("python", "")), str(hello.get("torchmonarch", ""))


def _views(actor: Actor, job: Job, rows: list[GatewaySession]) -> list[wire.GatewaySession]:
    verbs = verbs_of(actor, job.project)
    return [
        _view(row, can_end=row.ended_at is None and verb_to_detach(actor, row, job) in verbs)
        for row in rows
    ]


def _view(row: GatewaySession, *, can_end: bool) -> wire.GatewaySession:
    return wire.GatewaySession(
        id=row.pk,
        attempt=row.attempt.number,
        user=row.user.get_username(),
        source=row.source,
        kind=row.kind,
        purpose=row.purpose,
        state=row.state,
        created_at=row.created_at,
        seen_at=row.seen_at,
        ended_at=row.ended_at,
        reason=row.reason,
        bytes_up=row.bytes_up,
        bytes_down=row.bytes_down,
        can_end=can_end,
    )
