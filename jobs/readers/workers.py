"""The workers of an attempt: the state of each rank, and when its program last wrote a line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timezone

from jobs.logs.silence import last_line_times, silent_ranks_of
from jobs.models import Attempt, Cluster, Worker
from jobs.readers.clusters import ssh_command
from monarch_client.wire import attempts as wire

# The exit code of a program that SIGTERM ended.
ENDED_BY_SIGTERM = 143
_NEVER = datetime.max.replace(tzinfo=timezone.utc)


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
    views = [
        _view(row, attempt.cluster, last.get(row.rank), is_silent=row.rank in silent)
        for row in workers
    ]
    return _with_first_failure(views)


def _with_first_failure(workers: list[wire.Worker]) -> list[wire.Worker]:
    """Note the rank that failed first in those that the portal ended for it, by SIGTERM."""
    failed = [each for each in workers if each.exit_code not in {None, 0, ENDED_BY_SIGTERM}]
    if not failed:
        return workers
    first = min(failed, key=lambda each: (each.ended_at or _NEVER, each.rank)).rank
    return [
        replace(each, ended_after=first) if each.exit_code == ENDED_BY_SIGTERM else each
        for each in workers
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
        ended_after=None,
    )
