"""The metrics that the program of an attempt reported in its output."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.logs.lines import moment_of
from jobs.models import ProgramSeries
from jobs.permissions import Actor, job_for
from jobs.policies.program_metrics import MOST_SERIES, columns_of, thinned, within
from jobs.readers.chosen_attempt import chosen_attempt
from monarch_client.wire import metrics as wire

# Of all series of an answer together, so that no answer is large.
MOST_POINTS_OF_ANSWER = 20_000


@dataclass(frozen=True, slots=True)
class SeriesChoice:
    """A choice of attempt (by number; None: the newest), of a metric's history, and of a rank.

    `all_histories`: those of all metrics, in at most `points`, and within a window of time, or of
    steps with `by_step`.
    """

    attempt: int | None = None
    name: str = ""
    rank: int | None = None
    all_histories: bool = False
    points: int = MOST_POINTS_OF_ANSWER
    window: tuple[float, float] | None = None
    by_step: bool = False


def program_metrics(
    actor: Actor, slug: str, job_id: int, choice: SeriesChoice
) -> wire.ProgramMetrics:
    """Return the metrics, by name and rank; the histories of one name, where it is chosen.

    NotFoundError as for `job_for`, or for an attempt that does not exist.
    """
    job = job_for(actor, slug, job_id)
    attempt = chosen_attempt(job, choice.attempt)
    if attempt is None:
        return wire.ProgramMetrics(
            attempt=None, is_over=False, is_final=job.is_final, is_full=False, series=[]
        )
    is_over = attempt.ended_at is not None
    rows = attempt.program_series.order_by("name", "rank")
    is_full = rows.count() >= MOST_SERIES
    if choice.name:
        rows = rows.filter(name=choice.name)
    if choice.rank is not None:
        rows = rows.filter(rank=choice.rank)
    has_histories = bool(choice.name) or choice.all_histories
    found = list(rows if has_histories else rows.defer("old", "recent"))
    points = choice.points // max(1, len(found)) if has_histories else 0
    return wire.ProgramMetrics(
        attempt=attempt.number,
        is_over=is_over,
        is_final=is_over and (job.is_final or choice.attempt is not None),
        is_full=is_full,
        series=[_series(row, points, choice) for row in found],
    )


def _series(row: ProgramSeries, points: int, choice: SeriesChoice) -> wire.ProgramSeries:
    history = [*row.old, *row.recent] if points else []
    if choice.window:
        history = within(history, *choice.window, by_step=choice.by_step)
    history = thinned(history, points)
    return wire.ProgramSeries(
        name=row.name,
        rank=row.rank,
        at=moment_of(int(row.at * 1000)),
        step=row.step,
        value=row.value,
        lowest=row.lowest,
        highest=row.highest,
        **columns_of(history),
    )
