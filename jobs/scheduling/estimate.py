"""An estimate of a waiting job's start, if jobs last as long as similar jobs lasted before.

An estimate, not a promise: it plays the queue forward in the plan's order, each job at the first
time at which it fits, without overtaking. Jobs that are submitted later or end sooner change it.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping

from jobs.scheduling.limits import Amounts, Limit
from jobs.scheduling.snapshot import QueuedJob, RunningJob, Snapshot

# With more than so many ahead of it, an estimate would be a guess.
MOST_AHEAD = 500


def expected_start(
    job: QueuedJob, ahead: Iterable[QueuedJob], snapshot: Snapshot, lasts_s: Mapping[int, float]
) -> float | None:
    """Estimate the start in seconds since the epoch; None if an end that it needs is unknown.

    `lasts_s`: for how long a waiting job will probably hold its machines, and for how long a
    running one still will, by its number.
    """
    limits = {key: limit.copy() for key, limit in snapshot.limits.items()}
    now_s, count = snapshot.now_s, itertools.count()
    ends: list[tuple[float, int, RunningJob | QueuedJob]] = []
    for running in snapshot.running:
        if running.job_id in lasts_s:
            heapq.heappush(ends, (now_s + lasts_s[running.job_id], next(count), running))
    for each in itertools.chain(itertools.islice(ahead, MOST_AHEAD + 1), [job]):
        while not _fits(each, limits):
            if not ends:
                return None
            now_s, _, ended = heapq.heappop(ends)
            _give_back(ended, limits)
        if each is job:
            return now_s
        _take(each, limits)
        if each.job_id in lasts_s:
            heapq.heappush(ends, (now_s + lasts_s[each.job_id], next(count), each))
    return None


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
