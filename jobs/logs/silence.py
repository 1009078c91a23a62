"""The times of the last lines of ranks, and the ranks that are silent."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

from jobs.ground import clock
from jobs.models import Attempt, LogHead, Worker
from jobs.policies.silent_ranks import silent_ranks
from jobs.statuses import WorkerStatus

_AT_WORK = (WorkerStatus.READY, WorkerStatus.RUNNING)


def last_line_times(attempt: Attempt) -> dict[int, datetime]:
    """Return when the program of each rank last wrote a line; without those that never did."""
    # An attempt without any report has none.
    head: LogHead | None = getattr(attempt, "log_head", None)
    written = head.last_lines if head else {}
    return {int(rank): datetime.fromtimestamp(at, timezone.utc) for rank, at in written.items()}


def silent_ranks_of(
    attempt: Attempt, workers: Iterable[Worker], last: dict[int, datetime]
) -> frozenset[int]:
    """Return the running ranks that are silent; one that never wrote, since the program began."""
    begun = attempt.run_started_at
    if attempt.ended_at is not None or begun is None:
        return frozenset()
    running = [row.rank for row in workers if row.status in _AT_WORK]
    return silent_ranks({rank: last.get(rank, begun) for rank in running}, clock.now())
