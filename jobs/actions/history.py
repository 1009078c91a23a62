"""Writing down who did what to a job."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.live.channel import publish_on_commit
from jobs.logs.handed import redaction_of
from jobs.models import Attempt, Job, JobEvent
from jobs.permissions import Actor
from jobs.statuses import EventKind


def record_action(job: Job, actor: Actor, verb: str, message: str) -> None:
    """Note that `actor` did `verb`; call it inside the transaction of the change."""
    record_actions([job], actor, verb, message)


def record_actions(jobs: Sequence[Job], actor: Actor, verb: str, message: str) -> None:
    """The same of many jobs at once."""
    JobEvent.objects.bulk_create(
        JobEvent(
            job=job,
            kind=EventKind.ACTION,
            verb=verb,
            message=message,
            actor=actor.user,
            source=actor.source[:60],
        )
        for job in jobs
    )
    for job in jobs:
        publish_on_commit(job)


def record_note(
    job: Job,
    message: str,
    attempt: Attempt | None = None,
    *,
    verb: str = "",
    line: int | None = None,
) -> None:
    """Note something the portal saw or did by itself. `verb`: by what a reader finds it again.

    `line`: the line of the attempt's log that it tells of.
    """
    if attempt is not None:
        message = redaction_of(attempt).excerpt(message)
    JobEvent.objects.create(
        job=job, attempt=attempt, kind=EventKind.NOTE, verb=verb, message=message, line=line
    )
    publish_on_commit(job)
