"""The policies to which the planner is compared, each written from what is published of it.

`Fifo`: jobs start strictly in the order of submission.

`Easy`: first come, first served, with a reservation for the first job that does not fit; others
start before it where that does not delay it (Lifka, "The ANL/IBM SP Scheduling System", 1995; the
"aggressive" backfill of Mu'alem and Feitelson, 2001).

`Multifactor`: Slurm's priority/multifactor (https://slurm.schedmd.com/priority_multifactor.html):
a weighted sum of age (up to a week), fair share and size (of all nodes), with the weights of the
example on that page. Fair share is the classic 2^(-U/S): S the part that is a person's by shares,
U the effective part of all decayed usage: the person's own, moved towards that of their project by
their share in it. Half-life and longest age are Slurm's defaults, a week each. Jobs start in the
order of that sum with `Easy`'s backfill, which is what Slurm's does with one job ahead
(`bf_max_job_test` and its slices of time are not imitated).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from bench.schedule.ledger import Ledger, Who
from bench.schedule.simulate import Run, State
from bench.schedule.trace import TraceJob

WEIGHT_AGE = 1000.0
WEIGHT_FAIR_SHARE = 10_000.0
WEIGHT_SIZE = 1000.0
LONGEST_AGE_S = 7 * 24 * 3600.0


class Fifo:
    """Strictly one after the other."""

    name = "fifo"

    def choose(self, state: State) -> Iterable[TraceJob]:
        """Yield the oldest jobs, up to the first that does not fit."""
        free = state.free
        for job in state.queued.values():
            if job.nodes > free:
                return
            free -= job.nodes
            yield job

    def ended(self, run: Run, now_s: float) -> None:
        """Do nothing: this policy keeps no record of usage."""


class Easy:
    """First come first served, with backfill."""

    name = "easy"

    def choose(self, state: State) -> Iterable[TraceJob]:
        """Choose in the order of submission."""
        return backfilled(list(state.queued.values()), state)

    def ended(self, run: Run, now_s: float) -> None:
        """Do nothing: this policy keeps no record of usage."""


class Multifactor:
    """Slurm's multifactor priority, with backfill."""

    name = "slurm multifactor"

    def __init__(self, weights: dict[int, float], people: Iterable[Who]) -> None:
        self._ledger = Ledger()
        # A person's part of their project, and of all: it is equal within a project.
        self._sibling: dict[Who, float] = {}
        self._share: dict[Who, float] = {}
        by_project: dict[int, set[Who]] = defaultdict(set)
        for who in people:
            by_project[who[0]].add(who)
        total = sum(weights[project] for project in by_project)
        for project, mine in by_project.items():
            for who in mine:
                self._sibling[who] = 1 / len(mine)
                self._share[who] = weights[project] / total / len(mine)

    def choose(self, state: State) -> Iterable[TraceJob]:
        """Choose by the greatest priority, and of equal ones by age."""
        factor = self._fair_shares(state)
        priority = self._priority(state, factor)
        ordered = sorted(state.queued.values(), key=lambda job: (-priority(job), job.number))
        return backfilled(ordered, state)

    def ended(self, run: Run, now_s: float) -> None:
        """Record the run's usage, which decays from now on."""
        self._ledger.charge(run, now_s)

    def _fair_shares(self, state: State) -> dict[Who, float]:
        used = self._ledger.used(state.running.values(), state.now_s, promised=False)
        total = sum(used.values()) or 1.0
        by_project: dict[int, float] = defaultdict(float)
        for (project, _), node_hours in used.items():
            by_project[project] += node_hours / total
        factors = {}
        for who, share in self._share.items():
            own = used.get(who, 0.0) / total
            effective = own + (by_project[who[0]] - own) * self._sibling[who]
            factors[who] = 2 ** (-effective / share)
        return factors

    def _priority(self, state: State, fair: dict[Who, float]) -> Callable[[TraceJob], float]:
        def priority(job: TraceJob) -> float:
            age = min(1.0, (state.now_s - job.submit_s) / LONGEST_AGE_S)
            size = job.nodes / state.nodes
            share = fair[job.project, job.person]
            return WEIGHT_AGE * age + WEIGHT_FAIR_SHARE * share + WEIGHT_SIZE * size

        return priority


def backfilled(ordered: Sequence[TraceJob], state: State) -> Iterable[TraceJob]:
    """Choose the jobs that start in this order, with one reservation and backfill."""
    free = state.free
    chosen: list[TraceJob] = []
    waiting = iter(ordered)
    for job in waiting:
        if job.nodes > free:
            at_s, spare = _held_place(job, free, state, chosen)
            break
        free -= job.nodes
        chosen.append(job)
    else:
        return chosen
    for job in waiting:
        if not free:
            break
        if job.nodes > free:
            continue
        if state.now_s + job.asks_s > at_s:
            if job.nodes > spare:
                continue
            spare -= job.nodes
        free -= job.nodes
        chosen.append(job)
    return chosen


def _held_place(
    job: TraceJob, free: int, state: State, chosen: Iterable[TraceJob]
) -> tuple[float, int]:
    """Return when the job surely fits, and how many nodes are free beside it then."""
    ends = [(run.began_s + run.job.asks_s, run.job.nodes) for run in state.running.values()]
    ends += [(state.now_s + each.asks_s, each.nodes) for each in chosen]
    for ends_s, nodes in sorted(ends):
        free += nodes
        if free >= job.nodes:
            return ends_s, free - job.nodes
    return math.inf, 0
