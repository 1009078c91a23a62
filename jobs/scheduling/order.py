"""Whose turn it is next (see ADR 0016): one order, compared from left to right.

Within a pool: the rank of the queue; those for whom others were stopped; the share of the project,
least first; among the jobs of one project those that have waited longer than the pool's patience,
by age; then priority; then the share of the person, least first; then age. A share grows with each
job that had its turn, as if it had started, so that those who wait take turns as well, and a place
in the queue means something.

A heap of projects, and in each a heap of the people of its highest priority: n jobs cost n log n.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping

from jobs.scheduling.shares import promised_use
from jobs.scheduling.snapshot import DAY_S, QueuedJob, Share, Snapshot


class Order:
    """The jobs of one pool, in turn. Tell `charge` of each that had its turn."""

    def __init__(self, pool: str, jobs: Iterable[QueuedJob], snapshot: Snapshot) -> None:
        shares, persons = snapshot.shares.items(), snapshot.persons.items()
        self._shares = {project: share for (its, project), share in shares if its == pool}
        self._persons = {tuple(who): used for (its, *who), used in persons if its == pool}
        self._used: dict[int, float] = {}
        patience_s = snapshot.patience_s.get(pool, DAY_S)
        self._patient_until_s = snapshot.now_s - patience_s
        self._tiers: dict[int, list[QueuedJob]] = defaultdict(list)
        for job in jobs:
            self._tiers[job.rank].append(job)
        self._charged = False

    def __iter__(self) -> Iterator[QueuedJob]:
        for rank in sorted(self._tiers, reverse=True):
            # Whoever was stopped for them, or has a smaller share, would else take the machines.
            yield from sorted((job for job in self._tiers[rank] if job.is_owed), key=_age)
            yield from self._tier([job for job in self._tiers[rank] if not job.is_owed])

    def charge(self, job: QueuedJob) -> None:
        """Count the job's start, or its turn to wait, before the next one is chosen."""
        promise = promised_use(job.shape.units, job.duration_s)
        project, person = job.project_id, (job.project_id, job.person_id)
        self._used[project] = self._used_by(project) + promise / self._share(project).weight
        self._persons[person] = self._persons.get(person, 0.0) + promise
        self._charged = True

    def _tier(self, jobs: list[QueuedJob]) -> Iterator[QueuedJob]:
        by_project: dict[int, list[QueuedJob]] = defaultdict(list)
        for job in jobs:
            by_project[job.project_id].append(job)
        turns = {project: self._project(mine) for project, mine in by_project.items()}
        # Equal shares: the one with the oldest job first.
        oldest = {project: min(job.job_id for job in mine) for project, mine in by_project.items()}
        heap = [(self._used_by(project), oldest[project], project) for project in by_project]
        heapq.heapify(heap)
        while heap:
            _, age, project = heap[0]
            self._charged = False
            # All that need not be compared with other projects, which is until one counts.
            for job in turns[project]:
                yield job
                if self._charged:
                    heapq.heapreplace(heap, (self._used_by(project), age, project))
                    break
            else:
                heapq.heappop(heap)

    def _project(self, jobs: list[QueuedJob]) -> Iterator[QueuedJob]:
        """The jobs of one project and rank, in turn."""
        patient, others = [], defaultdict(list)
        for job in jobs:
            if job.since_s <= self._patient_until_s:
                patient.append(job)
            else:
                others[job.priority].append(job)
        yield from sorted(patient, key=_age)
        for priority in sorted(others, reverse=True):
            yield from self._people(sorted(others[priority], key=_age))

    def _people(self, jobs: list[QueuedJob]) -> Iterator[QueuedJob]:
        """Jobs of one priority, the oldest first of each person, who take turns by their shares."""
        waiting: dict[int, deque[QueuedJob]] = defaultdict(deque)
        for job in jobs:
            waiting[job.person_id].append(job)
        if len(waiting) == 1:
            yield from jobs
            return
        heap = [(self._used_of(mine[0]), mine[0].job_id, who) for who, mine in waiting.items()]
        heapq.heapify(heap)
        while heap:
            _, _, who = heap[0]
            mine = waiting[who]
            job = mine.popleft()
            yield job
            if mine:
                heapq.heapreplace(heap, (self._used_of(job), mine[0].job_id, who))
            else:
                heapq.heappop(heap)

    def _share(self, project: int) -> Share:
        return self._shares.get(project, _NOTHING)

    def _used_by(self, project: int) -> float:
        if project not in self._used:
            share = self._share(project)
            self._used[project] = share.used / share.weight
        return self._used[project]

    def _used_of(self, job: QueuedJob) -> float:
        return self._persons.get((job.project_id, job.person_id), 0.0)


_NOTHING = Share()


def _age(job: QueuedJob) -> int:
    return job.job_id


def by_pool(jobs: Iterable[QueuedJob]) -> Mapping[str, list[QueuedJob]]:
    """The jobs of each pool, pools in the order of their names."""
    found: dict[str, list[QueuedJob]] = defaultdict(list)
    for job in jobs:
        found[job.shape.pool].append(job)
    return dict(sorted(found.items()))
