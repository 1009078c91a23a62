"""The events of a job, oldest first."""

from __future__ import annotations

from jobs.permissions import Actor, job_for
from monarch_client.wire.jobs import Event


def job_history(
    actor: Actor, slug: str, job_id: int, *, after: int = 0, limit: int = 200
) -> list[Event]:
    """Return at most `limit` events with an id above `after`. NotFoundError as for `job_for`."""
    job = job_for(actor, slug, job_id)
    events = job.events.filter(pk__gt=after).select_related("actor", "attempt").order_by("pk")
    return [
        Event(
            id=event.pk,
            at=event.at,
            kind=event.kind,
            verb=event.verb,
            old_status=event.old_status,
            new_status=event.new_status,
            reason=event.reason,
            message=event.message,
            actor=event.actor.get_username() if event.actor else "",
            source=event.source,
            attempt=event.attempt.number if event.attempt else None,
            line=event.line,
        )
        for event in events[: max(1, min(1000, limit))]
    ]
