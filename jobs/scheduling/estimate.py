"""An estimate of a waiting job's start, if jobs last as long as similar jobs lasted before.

An estimate, not a promise: it plays the queue forward in the plan's order, each job at the first
time at which it fits, without overtaking. Jobs that are submitted later or end sooner change it.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping
from copy import copy

from jobs.scheduling.limits import Amounts, Limit
from jobs.scheduling.snapshot import QueuedJob, RunningJob, Snapshot

# With more than so many ahead of it, an estimate would be a guess.
MOST_AHEAD = 500


class Forecast:
    """The queue played forward, job by job in the plan's order.

    `lasts_s`: for how long a waiting job will probably hold its machines, and for how long a
    running one still will, by its number.
    """

    def __init__(self, snapshot: Snapshot, lasts_s: Mapping[int, float]) -> None:
        self._limits = {key: limit.copy() for key, limit in snapshot.limits.items()}
        self._now_s, self._lasts_s = snapshot.now_s, lasts_s
        # The number keeps the order of jobs that end at the same time.
        self._number = 0
        self._ends: list[tuple[float, int, RunningJob | QueuedJob]] = []
        for running in snapshot.running:
            self._note_end(running)

    def copy(self) -> Forecast:
        """Return a copy that goes on by itself."""
        other = copy(self)
        other._limits = {key: limit.copy() for key, limit in self._limits.items()}
        other._ends = list(self._ends)
        return other

    def start(self, job: QueuedJob) -> float | None:
        """Start the next job: return when, in seconds since the epoch; None if that is unknown."""
        while not _fits(job, self._limits):
            if not self._ends:
                return None
            self._now_s, _, ended = heapq.heappop(self._ends)
            _give_back(ended, self._limits)
        _take(job, self._limits)
        self._note_end(job)
        return self._now_s

    def _note_end(self, job: RunningJob | QueuedJob) -> None:
        if job.job_id in self._lasts_s:
            self._number += 1
            end_s = self._now_s + self._lasts_s[job.job_id]
            heapq.heappush(self._ends, (end_s, self._number, job))


def expected_start(
    job: QueuedJob, ahead: Iterable[QueuedJob], snapshot: Snapshot, lasts_s: Mapping[int, float]
) -> float | None:
    """Estimate the start in seconds since the epoch; None if an end that it needs is unknown."""
    forecast = Forecast(snapshot, lasts_s)
    if any(forecast.start(each) is None for each in itertools.islice(ahead, MOST_AHEAD + 1)):
        return None
    return forecast.start(job)


def _fits(job: QueuedJob, limits: Mapping[str, Limit]) -> bool:
    return not any(limits[key].lacks(job.shape.demand) for key in job.shape.limits)


def _take(job: QueuedJob, limits: Mapping[str, Limit]) -> None:
    for key in job.shape.limits:
        limits[key].take(job.shape.demand)


def _give_back(job: RunningJob | QueuedJob, limits: Mapping[str, Limit]) -> None:
    given: Amounts = tuple((what, -amount) for what, amount in job.shape.demand)
    for limit in (limits[key] for key in job.shape.limits):
        if not isinstance(job, RunningJob) or job.holds_of(limit):
            limit.take(given)
