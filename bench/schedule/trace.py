"""Traces to simulate: jobs with their sizes, times and owners, from a file or random.

Files are in the Standard Workload Format, version 2.2, as the Parallel Workloads Archive defines it
(https://www.cs.huji.ac.il/labs/parallel/workload/swf.html; Chapin et al., "Benchmarks and
Standards for the Evaluation of Parallel Job Schedulers", 1999): a job a line, 18 fields between
blanks, -1 for unknown values, comments from `;` on. Read here are 1 (number), 2 (submit time),
4 (run time), 5 and 8 (allocated and requested processors), 9 (requested time), 12 (user)
and 13 (group, here the project). Times are seconds, and a processor is a node.

Random traces have the shapes that such logs have (Feitelson, "Workload Modeling", 2015): sizes
log-uniform with a liking for powers of two, most jobs short (Weibull) and some long (lognormal),
arrivals in a rhythm of days, and bounds that people choose from a few round ones, far above what
the job takes (Mu'alem and Feitelson, 2001).
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
FIELDS = 18
# The time limits that people request, in seconds: a quarter of an hour to two days.
BOUNDS_S = (900.0, 1800.0, *(hours * HOUR_S for hours in (1, 2, 4, 8, 12, 24, 48)))


class TraceError(ValueError):
    """A file is not in the format, or cannot run on the machine; the message says where and why."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job. It runs for `runs_s`, which is never more than its bound `asks_s`."""

    number: int
    submit_s: float
    nodes: int
    runs_s: float
    asks_s: float
    project: int = 0
    person: int = 0

    @property
    def node_seconds(self) -> float:
        """The node-seconds that the job uses."""
        return self.nodes * self.runs_s


@dataclass(frozen=True, slots=True)
class Team:
    """A project: its weight, its part of all jobs, and its number of people."""

    weight: float
    appetite: float
    people: int


# Teams of a large share with few requests, of a small share with many, and between the two.
TEAMS = (
    Team(weight=4, appetite=0.25, people=6),
    Team(weight=2, appetite=0.15, people=3),
    Team(weight=2, appetite=0.25, people=8),
    Team(weight=1, appetite=0.15, people=2),
    Team(weight=1, appetite=0.20, people=5),
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """The parameters of a random trace.

    `load` is the requested part of the machine's node-seconds during the submissions.
    """

    jobs: int = 100_000
    nodes: int = 10_000
    load: float = 0.9
    largest: int = 1024
    seed: int = 16
    teams: tuple[Team, ...] = field(default=TEAMS)


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs in the order of their submission, the machine, and the weights of the projects."""

    jobs: tuple[TraceJob, ...]
    nodes: int
    weights: dict[int, float]

    @property
    def until_s(self) -> float:
        """The time at which the last job is submitted."""
        return self.jobs[-1].submit_s


def drawn(recipe: Recipe) -> Trace:
    """Draw a random trace; it is the same for the same recipe."""
    chance = random.Random(recipe.seed)
    jobs = [_draw(number, recipe, chance) for number in range(1, recipe.jobs + 1)]
    span_s = sum(job.node_seconds for job in jobs) / (recipe.nodes * recipe.load)
    moments = sorted(_moment(chance, span_s) for _ in jobs)
    return Trace(
        tuple(replace(job, submit_s=at) for job, at in zip(jobs, moments, strict=True)),
        recipe.nodes,
        {number: team.weight for number, team in enumerate(recipe.teams)},
    )


def _draw(number: int, recipe: Recipe, chance: random.Random) -> TraceJob:
    teams = recipe.teams
    [project] = chance.choices(range(len(teams)), [team.appetite for team in teams])
    # The first of a team submits most, the n-th an n-th of that.
    people = teams[project].people
    [person] = chance.choices(range(people), [1 / (place + 1) for place in range(people)])
    runs_s = _runs_s(chance)
    return TraceJob(
        number=number,
        submit_s=0.0,
        nodes=_nodes(recipe.largest, chance),
        runs_s=runs_s,
        asks_s=_asks_s(runs_s, chance),
        project=project,
        person=project * 100 + person,
    )


def _nodes(largest: int, chance: random.Random) -> int:
    exponent = chance.uniform(0, math.log2(largest))
    return 2 ** round(exponent) if chance.random() < 0.5 else int(2**exponent)


def _runs_s(chance: random.Random) -> float:
    if chance.random() < 0.7:
        drawn_s = chance.weibullvariate(900, 0.6)
    else:
        drawn_s = chance.lognormvariate(math.log(2 * HOUR_S), 1.0)
    return float(round(min(max(drawn_s, 10.0), BOUNDS_S[-1])))


def _asks_s(runs_s: float, chance: random.Random) -> float:
    if chance.random() < 0.1:
        return BOUNDS_S[-1]
    guessed_s = runs_s * math.exp(chance.uniform(0, math.log(10)))
    return BOUNDS_S[min(bisect_left(BOUNDS_S, guessed_s), len(BOUNDS_S) - 1)]


def _moment(chance: random.Random, span_s: float) -> float:
    """Draw a second of the span; noon is three times as likely as midnight."""
    while True:
        at_s = chance.uniform(0, span_s)
        if chance.random() * 1.5 < 1 - 0.5 * math.cos(2 * math.pi * at_s / DAY_S):
            return float(int(at_s))


def read_swf(lines: Iterable[str]) -> Iterator[TraceJob]:
    """Yield the jobs of a file that ran: those with a run time and size. TraceError: bad lines."""
    for place, line in enumerate(lines, start=1):
        if words := line.partition(";")[0].split():
            job = _job_of(_numbers(words, place))
            if job is not None:
                yield job


def _numbers(words: Sequence[str], place: int) -> list[float]:
    if len(words) != FIELDS:
        raise TraceError(f"line {place} has {len(words)} fields; SWF has {FIELDS}")
    try:
        return [float(word) for word in words]
    except ValueError as error:
        raise TraceError(f"line {place}: {error}") from None


def _job_of(fields: Sequence[float]) -> TraceJob | None:
    number, submit_s, _, runs_s, got = fields[:5]
    wanted, asks_s = fields[7:9]
    nodes = int(wanted if wanted > 0 else got)
    if nodes <= 0 or runs_s < 0:
        return None
    # Less than half a second is written as 0. A missing time limit is set to the run time.
    runs_s = max(runs_s, 1.0)
    bound_s = asks_s if asks_s > 0 else runs_s
    user, group = int(fields[11]), int(fields[12])
    return TraceJob(int(number), submit_s, nodes, min(runs_s, bound_s), bound_s, group, user)


def of_file(lines: Iterable[str], nodes: int) -> Trace:
    """Read a trace for a machine of `nodes`; projects have equal weights. TraceError: too small."""
    jobs = tuple(sorted(read_swf(lines), key=lambda job: (job.submit_s, job.number)))
    if not jobs:
        raise TraceError("there are no jobs that ran in it")
    if (most := max(job.nodes for job in jobs)) > nodes:
        raise TraceError(f"a job requests {most} nodes; the machine has {nodes}")
    return Trace(jobs, nodes, {job.project: 1.0 for job in jobs})
