"""The histories of the hosts of an attempt, so that one chart can show all of them."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.permissions import Actor, job_for
from jobs.policies.series import bounded, columns_of, within
from jobs.readers.chosen_attempt import chosen_attempt
from monarch_client.wire.metrics import Columns, Series

# A history is long: of more hosts, the first ones are read.
MOST_HOSTS = 32


@dataclass(frozen=True, slots=True)
class HistoryChoice:
    """A choice of attempt (by number; None: the newest), rank, and seconds since 1970.

    `points`: at most so many of all hosts together.
    """

    attempt: int | None
    rank: int | None
    window: tuple[float, float] | None
    points: int


@dataclass(frozen=True, slots=True)
class HostHistories:
    """The histories by rank, of `hosts` that have reported."""

    hosts: int
    series: list[Series]


def host_histories(actor: Actor, slug: str, job_id: int, choice: HistoryChoice) -> HostHistories:
    """Return the histories. NotFoundError as for `job_for`, or for an attempt that is not there."""
    attempt = chosen_attempt(job_for(actor, slug, job_id), choice.attempt)
    if attempt is None:
        return HostHistories(0, [])
    rows = attempt.host_metrics.defer("latest").order_by("rank")
    if choice.rank is not None:
        rows = rows.filter(rank=choice.rank)
    found = list(rows[:MOST_HOSTS])
    most = max(2, choice.points // max(1, len(found)))
    series = []
    for row in found:
        points = [*row.history, *row.recent]
        if choice.window:
            points = within(points, *choice.window)
        points, step_s = bounded(points, row.step_s, most)
        columns = Columns(**columns_of(points))
        series.append(Series(rank=row.rank, step_s=step_s, columns=columns))
    return HostHistories(rows.count(), series)
