"""The workers of an attempt: the state of each rank, and when its program last wrote a line."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

from jobs.ground import clock
from jobs.models import Attempt, Cluster, LogHead, Worker
from jobs.policies.silent_ranks import silent_ranks
from jobs.readers.clusters import ssh_command
from jobs.statuses import WorkerStatus
from monarch_client.wire import attempts as wire

_AT_WORK = (WorkerStatus.READY, WorkerStatus.RUNNING)


def workers_of(attempt: Attempt) -> list[wire.Worker]:
    """Return the workers of an attempt, by rank."""
    return worker_views(attempt, attempt.workers.order_by("rank"))


def worker_views(attempt: Attempt, rows: Iterable[Worker]) -> list[wire.Worker]:
    """Return the workers of `rows`, which are all of the attempt's or none."""
    workers = list(rows)
    if not workers:
        return []
    # An attempt without any report has none.
    head: LogHead | None = getattr(attempt, "log_head", None)
    written = head.last_lines if head else {}
    last = {int(rank): datetime.fromtimestamp(at, timezone.utc) for rank, at in written.items()}
    silent = _silent(attempt, workers, last)
    return [
        _view(row, attempt.cluster, last.get(row.rank), is_silent=row.rank in silent)
        for row in workers
    ]


def _silent(attempt: Attempt, workers: list[Worker], last: dict[int, datetime]) -> frozenset[int]:
    """Return the running ranks that are silent; one that never wrote, since the program began."""
    begun = attempt.run_started_at
    if attempt.ended_at is not None or begun is None:
        return frozenset()
    running = [row.rank for row in workers if row.status in _AT_WORK]
    return silent_ranks({rank: last.get(rank, begun) for rank in running}, clock.now())


def _view(
    row: Worker, cluster: Cluster | None, last_line_at: datetime | None, *, is_silent: bool
) -> wire.Worker:
    return wire.Worker(
        rank=row.rank,
        mesh=row.mesh,
        address=row.address,
        status=row.status,
        python=row.python,
        pid=row.pid,
        exit_code=row.exit_code,
        detail=row.detail,
        ready_at=row.ready_at,
        ended_at=row.ended_at,
        ssh=ssh_command(cluster, row.rank),
        last_line_at=last_line_at,
        is_silent=is_silent,
    )
