"""The scheduling order (see ADR 0016), compared from left to right.

Among pools that share machines: the rank of the queue; the jobs for which others were stopped; the
effective usage of the project, least first; in one project the jobs that have waited longer than
their pool's patience, by age; then priority; then the usage of the person, least first; then age.
Usage is of all these pools together, and grows with each job considered, as if it had
started, so that waiting projects alternate as well, and a position in the queue has a meaning.

A heap of projects, and in each a heap of the people of its highest priority: n jobs cost n log n.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator

from jobs.scheduling.shares import promised_use
from jobs.scheduling.snapshot import DAY_S, QueuedJob, Snapshot


class Order:
    """The scheduling order of jobs in pools that share machines. `charge` each one considered."""

    def __init__(
        self, pools: Collection[str], jobs: Iterable[QueuedJob], snapshot: Snapshot
    ) -> None:
        self.pools = pools
        self._weights: dict[int, float] = {}
        self._used: dict[int, float] = defaultdict(float)  # by the weight
        self._persons: dict[tuple[int, int], float] = defaultdict(float)
        for (pool, project), share in snapshot.shares.items():
            if pool in pools:
                self._weights[project] = share.weight
                self._used[project] += share.used / share.weight
        for (pool, project, person), used in snapshot.persons.items():
            if pool in pools:
                self._persons[project, person] += used
        self._patient_until_s = {
            pool: snapshot.now_s - snapshot.patience_s.get(pool, DAY_S) for pool in pools
        }
        self._tiers: dict[int, list[QueuedJob]] = defaultdict(list)
        for job in jobs:
            self._tiers[job.rank].append(job)
        self._charged = False

    def __iter__(self) -> Iterator[QueuedJob]:
        for rank in sorted(self._tiers, reverse=True):
            # Their victims, or jobs of a smaller share, would else take the machines.
            yield from sorted((job for job in self._tiers[rank] if job.has_claim), key=_age)
            yield from self._tier([job for job in self._tiers[rank] if not job.has_claim])

    def charge(self, job: QueuedJob) -> None:
        """Charge the job's start, or its wait, before the next job is chosen."""
        promise, project = promised_use(job.shape.units, job.duration_s), job.project_id
        self._used[project] += promise / self._weights.get(project, 1.0)
        self._persons[project, job.person_id] += promise
        self._charged = True

    def _tier(self, jobs: list[QueuedJob]) -> Iterator[QueuedJob]:
        by_project: dict[int, list[QueuedJob]] = defaultdict(list)
        for job in jobs:
            by_project[job.project_id].append(job)
        turns = {project: self._project(mine) for project, mine in by_project.items()}
        # Equal shares: the one with the oldest job first.
        oldest = {project: min(job.job_id for job in mine) for project, mine in by_project.items()}
        heap = [(self._used[project], oldest[project], project) for project in by_project]
        heapq.heapify(heap)
        while heap:
            _, age, project = heap[0]
            self._charged = False
            # All that need not be compared with other projects, which is until one counts.
            for job in turns[project]:
                yield job
                if self._charged:
                    heapq.heapreplace(heap, (self._used[project], age, project))
                    break
            else:
                heapq.heappop(heap)

    def _project(self, jobs: list[QueuedJob]) -> Iterator[QueuedJob]:
        """Yield the jobs of one project and rank in order."""
        patient, others = [], defaultdict(list)
        for job in jobs:
            if job.since_s <= self._patient_until_s[job.shape.pool]:
                patient.append(job)
            else:
                others[job.priority].append(job)
        yield from sorted(patient, key=_age)
        for priority in sorted(others, reverse=True):
            yield from self._people(sorted(others[priority], key=_age))

    def _people(self, jobs: list[QueuedJob]) -> Iterator[QueuedJob]:
        """Yield jobs of one priority, oldest first per person; people alternate by their usage."""
        waiting: dict[int, deque[QueuedJob]] = defaultdict(deque)
        for job in jobs:
            waiting[job.person_id].append(job)
        if len(waiting) == 1:
            yield from jobs
            return
        used, project = self._persons, jobs[0].project_id
        heap = [
            (used[project, person_id], mine[0].job_id, person_id)
            for person_id, mine in waiting.items()
        ]
        heapq.heapify(heap)
        while heap:
            _, _, person_id = heap[0]
            mine = waiting[person_id]
            job = mine.popleft()
            yield job
            if mine:
                heapq.heapreplace(heap, (used[project, person_id], mine[0].job_id, person_id))
            else:
                heapq.heappop(heap)


def _age(job: QueuedJob) -> int:
    return job.job_id
