"""The figures of an outcome: the machine's utilization, waits, and the projects' parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.measure import percentile
from bench.schedule.simulate import Outcome, Run

# Shorter jobs count as if they took this long: their short waits would weigh too much.
SHORTEST_S = 10.0


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean, median and 95th percentile of many values."""

    mean: float
    median: float
    p95: float


def spread(values: Sequence[float]) -> Spread:
    """Compute the spread of the values. ValueError: there are none."""
    if not values:
        raise ValueError("there are no values to summarize")
    return Spread(sum(values) / len(values), percentile(values, 50), percentile(values, 95))


def waits_s(runs: Iterable[Run]) -> Spread:
    """Compute the spread of the seconds from submission to start."""
    return spread([run.waited_s for run in runs])


def bounded_slowdowns(runs: Iterable[Run]) -> Spread:
    """Compute the spread of jobs' turnaround by their run time (Feitelson): at least 1."""
    return spread(
        [
            max(1.0, (run.waited_s + run.job.runs_s) / max(run.job.runs_s, SHORTEST_S))
            for run in runs
        ]
    )


def by_project(runs: Iterable[Run]) -> dict[int, list[Run]]:
    """Group the runs by project."""
    found: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.job.project].append(run)
    return dict(sorted(found.items()))


def utilisation(outcome: Outcome) -> float:
    """Return the part of all node-seconds, from first to last submission, in which jobs ran."""
    first_s, until_s = outcome.trace.jobs[0].submit_s, outcome.trace.until_s
    ran = sum(
        run.job.nodes * max(0.0, min(run.ended_s, until_s) - run.began_s) for run in outcome.runs
    )
    return ran / (outcome.trace.nodes * (until_s - first_s))


def delivered(outcome: Outcome) -> tuple[dict[int, float], float]:
    """Return each project's part of what ran while every project had queued jobs.

    Also returns for how many seconds that was so.
    """
    queued: dict[int, int] = dict.fromkeys(outcome.trace.weights, 0)
    running: dict[int, int] = dict.fromkeys(outcome.trace.weights, 0)
    given: dict[int, float] = dict.fromkeys(outcome.trace.weights, 0.0)
    lasted_s = last_s = 0.0
    for at_s, project, waiting, nodes in _changes(outcome):
        if at_s > last_s and all(queued.values()):
            lasted_s += at_s - last_s
            for each, held in running.items():
                given[each] += held * (at_s - last_s)
        last_s = at_s
        queued[project] += waiting
        running[project] += nodes
    total = sum(given.values())
    return {each: part / total if total else 0.0 for each, part in given.items()}, lasted_s


def _changes(outcome: Outcome) -> Iterator[tuple[float, int, int, int]]:
    """Yield each time, project, and the change of its number of queued jobs and used nodes."""
    changes: list[tuple[float, int, int, int]] = []
    for run in outcome.runs:
        project, nodes = run.job.project, run.job.nodes
        changes.append((run.job.submit_s, project, 1, 0))
        changes.append((run.began_s, project, -1, nodes))
        changes.append((run.ended_s, project, 0, -nodes))
    yield from sorted(changes)
