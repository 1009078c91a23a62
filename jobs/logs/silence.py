"""The times of the last lines of ranks, and the ranks that are silent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
    """Return the running ranks that are silent; none before the program began, or after its end."""
    begun = attempt.run_started_at
    if attempt.ended_at is not None or begun is None:
        return frozenset()
    running = [row.rank for row in workers if row.status in _AT_WORK]
    return silent_ranks({rank: last.get(rank) for rank in running}, begun, clock.now())


@dataclass(frozen=True, slots=True)
class Silence:
    """A silent rank. `since`: its last line, or the begin of its program if it never wrote."""

    rank: int
    since: datetime


def silences_of(attempt: Attempt) -> list[Silence]:
    """Return the silent ranks of an attempt, by rank."""
    last = last_line_times(attempt)
    found = silent_ranks_of(attempt, attempt.workers.only("rank", "status"), last)
    begun = attempt.run_started_at or attempt.created_at
    return [Silence(rank, last.get(rank, begun)) for rank in sorted(found)]
