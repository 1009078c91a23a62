"""The task contexts of an attempt as last reported."""

from __future__ import annotations

from datetime import timedelta

from jobs.ground import clock
from jobs.logs.task_frames import summary_of
from jobs.models import Attempt, Job, TaskReport
from jobs.permissions import Actor, job_for
from jobs.readers.chosen_attempt import chosen_attempt
from monarch_client.wire.tasks import MOST_COUNTED, ContextSummary, TaskContext, TaskContexts

# Nodes report at least every 15 seconds, every 30 where their lines are printed.
SILENT_AFTER = timedelta(seconds=75)
# Of a job with a context on each of many nodes.
MOST_CONTEXTS = 200


def job_tasks(actor: Actor, slug: str, job_id: int, number: int | None = None) -> TaskContexts:
    """Return the task contexts of an attempt, the newest unless `number` names one.

    NotFoundError as for `job_for`, or for an attempt that does not exist.
    """
    job = job_for(actor, slug, job_id)
    attempt = chosen_attempt(job, number)
    if attempt is None:
        return TaskContexts(
            attempt=None, is_over=False, is_final=job.is_final, contexts=[], left_out=0
        )
    is_over = attempt.ended_at is not None
    contexts, left_out = _contexts(attempt, is_over=is_over)
    return TaskContexts(
        attempt=attempt.number,
        is_over=is_over,
        is_final=is_over and (job.is_final or number is not None),
        contexts=contexts,
        left_out=left_out,
    )


def has_tasks(job: Job, number: int | None = None) -> bool:
    """Whether a node has reported a task context, in any attempt or in that of a number."""
    attempts = (
        {"attempt__job": job}
        if number is None
        else {"attempt__job": job, "attempt__number": number}
    )
    return TaskReport.objects.filter(**attempts).exists()


def _contexts(attempt: Attempt, *, is_over: bool) -> tuple[list[TaskContext], int]:
    contexts: list[TaskContext] = []
    left_out = 0
    latest = clock.now() - SILENT_AFTER
    rows = TaskReport.objects.filter(attempt=attempt).order_by("rank")
    for row in rows.iterator(chunk_size=50):
        left_out += row.latest["left_out"]
        for each in row.latest["contexts"]:
            summary = None if len(contexts) == MOST_CONTEXTS else summary_of(each)
            if summary is None:
                left_out += 1
                continue
            is_silent = summary.is_open and not is_over and row.at < latest
            contexts.append(_context(summary, row, is_silent=is_silent))
    return contexts, min(MOST_COUNTED, left_out)


def _context(summary: ContextSummary, row: TaskReport, *, is_silent: bool) -> TaskContext:
    fields = {name: getattr(summary, name) for name in ContextSummary.__dataclass_fields__}
    return TaskContext(**fields, rank=row.rank, at=row.at, is_silent=is_silent)
