"""The timeline of a job: what people and the portal did to it."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.live.channel import (
    publish_many_on_commit,
    publish_on_commit,
    publish_queue_on_commit,
)
from jobs.logs.handed import redaction_of
from jobs.models import Attempt, Job, JobEvent
from jobs.permissions import Actor
from jobs.statuses import EventKind


def note_action(job: Job, actor: Actor, verb: str, message: str) -> None:
    """Add to the job's timeline that `actor` did `verb`; call it in the transaction of the change.

    The timeline is deleted with the job. `jobs.audit.record` keeps what must outlive it.
    """
    _action(job, actor, verb, message).save(force_insert=True)
    publish_on_commit(job)


def note_actions(messages: Sequence[tuple[Job, str]], actor: Actor, verb: str) -> None:
    """Store an event for each job, with its message, that `actor` did `verb`; in few statements."""
    JobEvent.objects.bulk_create(_action(job, actor, verb, message) for job, message in messages)
    publish_many_on_commit([(job.pk, job.project_id) for job, _ in messages])
    publish_queue_on_commit()


def _action(job: Job, actor: Actor, verb: str, message: str) -> JobEvent:
    return JobEvent(
        job=job,
        kind=EventKind.ACTION,
        verb=verb,
        message=message,
        actor=actor.user,
        source=actor.source[:60],
    )


def record_note(
    job: Job,
    message: str,
    attempt: Attempt | None = None,
    *,
    verb: str = "",
    line: int | None = None,
) -> None:
    """Note something the portal saw or did by itself. `verb`: by what a reader finds it again.

    `line`: the line of the attempt's log that it is about.
    """
    if attempt is not None:
        message = redaction_of(attempt).excerpt(message)
    JobEvent.objects.create(
        job=job, attempt=attempt, kind=EventKind.NOTE, verb=verb, message=message, line=line
    )
    publish_on_commit(job)
