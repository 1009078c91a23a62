"""What a plan may look at, and what it answers: plain values, no database."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from jobs.scheduling.causes import Cause
from jobs.scheduling.kept import KeptCluster, Wish
from jobs.scheduling.limits import Limit, Shape
from jobs.statuses import WaitReason

DAY_S = 24 * 3600.0


@dataclass(slots=True)
class QueuedJob:
    """A job that could start now. Times are seconds, moments seconds since the epoch.

    Nobody changes one. It is not frozen, since of these there are a hundred thousand, and a frozen
    one takes three times as long to make.
    """

    job_id: int
    shape: Shape
    priority: int = 50  # 0..100, higher first, among the jobs of one project
    project_id: int = 0
    person_id: int = 0
    rank: int = 0  # of its queue; higher first
    since_s: float = 0.0  # since when it waits
    duration_s: float | None = None  # how long it holds its machines at most; None: no bound
    wish: Wish | None = None  # only of a job that would go onto a cluster that was kept
    is_owed: bool = False  # others were stopped for it
    stopped_for: int = 0  # the job for which it was stopped itself

    def until_s(self, now_s: float, keeps_s: float = 0.0) -> float:
        """Until when it holds machines at most if it starts now; math.inf: nothing bounds it.

        `keeps_s`: for how long its cluster stays on after it, where the job says nothing of that.
        """
        if self.duration_s is None:
            return math.inf
        own_s = None if self.wish is None else self.wish.keeps_s
        return now_s + self.duration_s + (keeps_s if own_s is None else own_s)


@dataclass(slots=True)
class RunningJob:
    """A job that holds machines. `ends_s`: when it has given them back at the latest.

    Nobody changes one. It is not frozen, as there may be thousands, which are made for each pass.

    `is_leaving`: its machines are being given back; `stopped_for`: the job that needs them, if it
    is for one. `counts_in_quotas`: not where only the machines of it are left. `cluster`: the one
    it is on. `kept`: the one that is left, on and without a job, if it may be given back.
    """

    job_id: int
    shape: Shape
    ends_s: float | None = None
    began_s: float = 0.0
    project_id: int = 0
    rank: int = 0  # of its queue
    is_preemptible: bool = False  # it may be stopped, and its machines are nobody else's
    is_leaving: bool = False
    stopped_for: int = 0
    counts_in_quotas: bool = True
    cluster: str = ""
    kept: str = ""

    def holds_of(self, limit: Limit) -> bool:
        """Whether it is counted in a limit of its shape."""
        return limit.kind.is_machines or self.counts_in_quotas


@dataclass(frozen=True, slots=True)
class Preemption:
    """Whether jobs of a pool may be stopped for others, and by which right."""

    reclaim: bool = False
    by_rank: bool = False

    @property
    def is_on(self) -> bool:
        """Whether machines are taken back at all."""
        return self.reclaim or self.by_rank


@dataclass(frozen=True, slots=True)
class Share:
    """What a project (or a person in it) has used of a pool, in decayed unit-hours."""

    used: float = 0.0
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The queue, what runs, and what limits both.

    `limits` by their key; `problems` say why nothing can start on a backend; `barred` why no job of
    a project may. `shares` are of (pool, project), `persons` of (pool, project, person): what of
    either is missing has used nothing, at weight 1. `kept` are clusters that take jobs, best first;
    `named` those that a queued job names, also one that cannot start yet, unless it is held.
    """

    queued: tuple[QueuedJob, ...]
    running: tuple[RunningJob, ...] = ()
    limits: Mapping[str, Limit] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    barred: Mapping[int, tuple[WaitReason, str]] = field(default_factory=dict)
    shares: Mapping[tuple[str, int], Share] = field(default_factory=dict)
    persons: Mapping[tuple[str, int, int], float] = field(default_factory=dict)
    patience_s: Mapping[str, float] = field(default_factory=dict)  # by pool; else a day
    preemption: Mapping[str, Preemption] = field(default_factory=dict)  # by pool; else none
    kept: tuple[KeptCluster, ...] = ()
    named: Collection[str] = ()
    now_s: float = 0.0

    @property
    def all_named(self) -> set[str]:
        """The clusters that a queued job names: of those that can start now, and of all others."""
        wishes = (job.wish for job in self.queued if job.wish is not None)
        return {wish.cluster for wish in wishes if wish.cluster}.union(self.named)


@dataclass(frozen=True, slots=True)
class Start:
    """Let this job start now: on machines of its own, or `onto` the kept cluster of this name."""

    job_id: int
    onto: str = ""


@dataclass(slots=True)
class Wait:
    """Leave this job queued, and why. Not frozen, as there are as many as jobs that wait."""

    job_id: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class Refuse:
    """This job can never start here; the sentence says why."""

    job_id: int
    message: str


@dataclass(frozen=True, slots=True)
class Preempt:
    """Stop these jobs, so that this one can start; until then it waits, and why.

    `kept` are clusters without a job that are given back for it.
    """

    job_id: int
    victims: tuple[int, ...]
    cause: Cause
    kept: tuple[str, ...] = ()


Decision = Start | Wait | Refuse | Preempt
