"""The store of reports of task contexts: the latest of each rank.

Called inside the transaction of `jobs.actions.ingest.ingest_frames`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jobs.ground import clock
from jobs.logs.frames import Frame
from jobs.logs.handed import redaction_of
from jobs.logs.lines import moment_of
from jobs.logs.task_frames import kept_of
from jobs.logs.write import locked_head
from jobs.models import Attempt, TaskReport


class MaskedReport(NamedTuple):
    """The report of a rank in its stored form; `t`: its time in seconds."""

    rank: int
    t: float
    latest: dict[str, Any]


def masked_reports(attempt: Attempt, frames: list[Frame]) -> list[MaskedReport]:
    """Return the newest report of each rank; call it before any lock is taken: it takes time."""
    mask = redaction_of(attempt).excerpt
    newest = {frame["rank"]: frame for frame in sorted(frames, key=lambda each: each["t"])}
    return [MaskedReport(rank, frame["t"], kept_of(frame, mask)) for rank, frame in newest.items()]


def store_tasks(attempt: Attempt, reports: list[MaskedReport]) -> None:
    """Store the reports, unless newer ones are known."""
    # Every change of an attempt and its log locks the log first; so they are stored one by one.
    locked_head(attempt.pk)
    ranks = [each.rank for each in reports]
    rows = TaskReport.objects.filter(attempt=attempt, rank__in=ranks)
    known = dict(rows.values_list("rank", "at"))
    # A clock that is ahead must not make all that follows look old.
    moments = {each.rank: min(moment_of(int(each.t * 1000)), clock.now()) for each in reports}
    TaskReport.objects.bulk_create(
        [
            TaskReport(attempt=attempt, rank=each.rank, at=moments[each.rank], latest=each.latest)
            for each in reports
            if each.rank not in known or known[each.rank] < moments[each.rank]
        ],
        update_conflicts=True,
        unique_fields=["attempt", "rank"],
        update_fields=["at", "latest"],
    )
