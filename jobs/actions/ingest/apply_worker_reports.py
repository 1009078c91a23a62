"""The reported state of hosts: one row per rank, created at its first report."""

from __future__ import annotations

from typing import Any

from jobs.ground import clock
from jobs.logs.frames import Frame, about_rank
from jobs.logs.lines import moment_of, storable
from jobs.models import Attempt, Worker
from jobs.statuses import WorkerStatus
from monarch_client.runner.vocabulary.frames import EXIT

_CHARS = {"mesh": 60, "host": 100, "address": 200, "python": 20, "detail": 500}
_LISTENING = frozenset({WorkerStatus.READY, WorkerStatus.RUNNING})
_OVER = frozenset({WorkerStatus.EXITED, WorkerStatus.LOST})
_CHANGEABLE = [*_CHARS, "status", "pid", "exit_code", "ready_at", "ended_at"]


def apply_worker_reports(attempt: Attempt, reports: list[Frame]) -> None:
    """Apply `reports` (kinds worker and exit) in order, in two statements whatever their number."""
    if not reports:
        return
    ranks = {about_rank(report) for report in reports}
    workers = {row.rank: row for row in Worker.objects.filter(attempt=attempt, rank__in=ranks)}
    for report in reports:
        rank = about_rank(report)
        worker = workers.setdefault(rank, Worker(attempt=attempt, rank=rank))
        if report["kind"] == EXIT:
            worker.exit_code = report["exit_code"]
        elif not _is_late(worker, report):
            _apply(worker, report)
    Worker.objects.bulk_create(
        workers.values(),
        update_conflicts=True,
        unique_fields=["attempt", "rank"],
        update_fields=_CHANGEABLE,
    )


def _is_late(worker: Worker, report: Frame) -> bool:
    """Whether rank 0's guess about a silent peer comes after the peer's own report of its end."""
    return about_rank(report) != report["rank"] and worker.status == WorkerStatus.EXITED


def _apply(worker: Worker, report: Frame) -> None:
    worker.status = report["status"]
    for field, chars in _CHARS.items():
        if report.get(field):
            setattr(worker, field, storable(report[field], chars))
    for field in ("pid", "exit_code"):
        if report.get(field) is not None:
            setattr(worker, field, report[field])
    _note_times(worker, report)


def _note_times(worker: Worker, report: Frame) -> None:
    at: Any = min(moment_of(int(report["t"] * 1000)), clock.now())
    if worker.status in _LISTENING and worker.ready_at is None:
        worker.ready_at = at
    # A peer that was given up and comes back is not over after all.
    worker.ended_at = (worker.ended_at or at) if worker.status in _OVER else None
