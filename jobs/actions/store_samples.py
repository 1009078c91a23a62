"""Keeping what hosts tell of themselves: the latest sample of each, and a history that is bounded.

Called inside the transaction of `jobs.actions.ingest_frames`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from jobs import clock
from jobs.logs.frames import Frame
from jobs.logs.lines import moment_of
from jobs.logs.samples import kept_of
from jobs.logs.write import locked_head
from jobs.models import Attempt, HostMetrics
from jobs.policies.series import MOST_RECENT, folded, point_of

# Whoever sends more often, or the same again, is not listened to.
LEAST_PAUSE = timedelta(seconds=1)


def store_samples(attempt: Attempt, samples: list[Frame]) -> None:
    """Store the newest of `samples` of each rank, in one statement whatever their number."""
    # Whoever changes an attempt and its log locks the log first; so samples come one by one, too.
    locked_head(attempt.pk)
    newest = {sample["rank"]: sample for sample in sorted(samples, key=lambda each: each["t"])}
    known = _known(attempt, newest)
    rows = [_row(attempt, known.get(rank), sample) for rank, sample in sorted(newest.items())]
    fresh = [row for row in rows if row is not None]
    HostMetrics.objects.bulk_create(
        fresh,
        update_conflicts=True,
        unique_fields=["attempt", "rank"],
        update_fields=["at", "latest", "recent"],
    )
    # Not all hosts of a job at once.
    full = [row.rank for row in fresh if len(row.recent) >= MOST_RECENT + row.rank % MOST_RECENT]
    if full:
        _fold(attempt, full)


def _known(attempt: Attempt, ranks: Iterable[int]) -> dict[int, HostMetrics]:
    rows = HostMetrics.objects.filter(attempt=attempt, rank__in=list(ranks))
    return {row.rank: row for row in rows.only("rank", "at", "recent")}


def _row(attempt: Attempt, known: HostMetrics | None, sample: Frame) -> HostMetrics | None:
    # A clock that is ahead must not make all that follows look old.
    at = min(moment_of(int(sample["t"] * 1000)), clock.now())
    if known is not None and at - known.at < LEAST_PAUSE:
        return None
    latest = kept_of(sample)
    recent = [*(known.recent if known else []), point_of(latest, at.timestamp())]
    return HostMetrics(attempt=attempt, rank=sample["rank"], at=at, latest=latest, recent=recent)


def _fold(attempt: Attempt, ranks: list[int]) -> None:
    rows = list(HostMetrics.objects.filter(attempt=attempt, rank__in=ranks).defer("latest"))
    for row in rows:
        row.history, row.step_s = folded(row.history, row.recent, row.step_s)
        row.recent = []
    HostMetrics.objects.bulk_update(rows, ["history", "step_s", "recent"], batch_size=100)
