"""The workers of an attempt: the state of each rank, and when its program last wrote a line."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from jobs.logs.silence import last_line_times, silent_ranks_of
from jobs.models import Attempt, Cluster, Worker
from jobs.readers.clusters import ssh_command
from monarch_client.wire import attempts as wire


def workers_of(attempt: Attempt) -> list[wire.Worker]:
    """Return the workers of an attempt, by rank."""
    return worker_views(attempt, attempt.workers.order_by("rank"))


def worker_views(attempt: Attempt, rows: Iterable[Worker]) -> list[wire.Worker]:
    """Return the workers of `rows`, which are all of the attempt's or none."""
    workers = list(rows)
    if not workers:
        return []
    last = last_line_times(attempt)
    silent = silent_ranks_of(attempt, workers, last)
    return [
        _view(row, attempt.cluster, last.get(row.rank), is_silent=row.rank in silent)
        for row in workers
    ]


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
