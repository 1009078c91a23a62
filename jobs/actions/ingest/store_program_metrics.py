"""The store of metrics that programs report in their output.

Called inside the transaction of `jobs.actions.ingest.ingest_frames`, for lines that were not known
before, while the log of the attempt is locked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, fields

from django.db.models import QuerySet

from jobs.models import Attempt, ProgramSeries
from jobs.policies.program_metrics import MOST_SERIES, History, Report

_Key = tuple[int, str]
_FIELDS = [each.name for each in fields(History)]
_OLD = "old"
# What changes while the recent points are few.
_CHANGED = [name for name in _FIELDS if name not in (_OLD, "stride")]


def store_program_metrics(attempt: Attempt, reports: Sequence[Report]) -> None:
    """Add the reports to their series: of all that are new, only as many as an attempt may have."""
    wanted = {(report.rank, name) for report in reports for name in report.values}
    histories = _known(attempt, wanted)
    room = 0 if len(histories) == len(wanted) else MOST_SERIES - attempt.program_series.count()
    for report in reports:
        for name, value in report.values.items():
            key = (report.rank, name)
            if key not in histories:
                if room <= 0:
                    continue
                room -= 1
                histories[key] = History(report.at, report.step, value)
            histories[key].add(report.at, report.step, value)
    full = {key: history for key, history in histories.items() if history.is_full}
    _fold(attempt, full)
    _save(attempt, full, _FIELDS)
    _save(attempt, {key: histories[key] for key in histories.keys() - full.keys()}, _CHANGED)


def _known(attempt: Attempt, wanted: set[_Key]) -> dict[_Key, History]:
    """Return the series that exist, without what is old."""
    found = _rows(attempt, wanted).defer(_OLD)
    names = [name for name in _FIELDS if name != _OLD]
    return {
        (row.rank, row.name): History(**{name: getattr(row, name) for name in names})
        for row in found
        if (row.rank, row.name) in wanted
    }


def _fold(attempt: Attempt, full: dict[_Key, History]) -> None:
    if not full:
        return
    for rank, name, old in _rows(attempt, full).values_list("rank", "name", _OLD):
        if (rank, name) in full:
            full[rank, name].old = old
    for history in full.values():
        history.fold()


def _rows(attempt: Attempt, keys: Collection[_Key]) -> QuerySet[ProgramSeries]:
    return attempt.program_series.filter(
        rank__in={rank for rank, _ in keys}, name__in={name for _, name in keys}
    )


def _save(attempt: Attempt, histories: dict[_Key, History], names: list[str]) -> None:
    ProgramSeries.objects.bulk_create(
        [
            ProgramSeries(attempt=attempt, rank=rank, name=name, **asdict(history))
            for (rank, name), history in sorted(histories.items())
        ],
        update_conflicts=True,
        unique_fields=["attempt", "rank", "name"],
        update_fields=names,
    )
