"""The input and the decisions of a scheduling pass: plain values, no database."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from jobs.scheduling.causes import Cause
from jobs.scheduling.limits import Limit, Shape
from jobs.statuses import WaitReason

DAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class NamedCluster:
    """The cluster that a job names in `portal.cluster`, and whether it can take the job now.

    `problem` says why the job has to wait for it; "" if it need not. With `is_gone` it never can.
    """

    name: str
    problem: str = ""
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class WarmCluster:
    """A cluster without a job that a project keeps for its next one; the plan counts it as free.

    `shape` are its machines and the limits that they count in. A cluster that is not `is_on` was
    stopped: it needs machines to be started again. One that `is_ending` still has its machines,
    and takes no job any more.
    """

    name: str
    project_id: int
    fingerprint: str
    shape: Shape
    is_on: bool = True
    is_ending: bool = False


@dataclass(slots=True)
class QueuedJob:
    """A job that could start now. Times are seconds, moments seconds since the epoch.

    Never changed. It is not frozen, since of these there are a hundred thousand, and a frozen
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
    cluster: NamedCluster | None = None  # only of a job that names one
    has_claim: bool = False  # others were stopped for it
    stopped_for: int = 0  # the job for which it was stopped itself

    def until_s(self, now_s: float) -> float:
        """Return when it ends at the latest if it starts now; math.inf if nothing bounds it."""
        return math.inf if self.duration_s is None else now_s + self.duration_s


@dataclass(slots=True)
class RunningJob:
    """A job that holds machines. `ends_s`: when it has given them back at the latest.

    Never changed. It is not frozen, as there may be thousands, which are made for each pass.

    `is_leaving`: its machines are being given back; `stopped_for`: the job that needs them, if it
    is for one. `counts_in_quotas`: not where only the machines of it are left.
    """

    job_id: int
    shape: Shape
    ends_s: float | None = None
    began_s: float = 0.0
    project_id: int = 0
    rank: int = 0  # of its queue
    is_preemptible: bool = False  # it may be stopped, and its machines are its own
    is_leaving: bool = False
    stopped_for: int = 0
    counts_in_quotas: bool = True

    def holds_of(self, limit: Limit) -> bool:
        """Whether it is counted in a limit of its shape."""
        return limit.kind.is_machines or self.counts_in_quotas


@dataclass(frozen=True, slots=True)
class Preemption:
    """Rights by which jobs of a pool may be preempted."""

    reclaim: bool = False
    by_rank: bool = False

    @property
    def is_on(self) -> bool:
        """Whether machines are taken back at all."""
        return self.reclaim or self.by_rank


@dataclass(frozen=True, slots=True)
class Share:
    """Usage of a pool by a project (or a person in it), in decayed normalized hours."""

    used: float = 0.0
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The queue, what runs, and what limits both.

    `limits` by their key; `problems` say why nothing can start on a backend; `barred` why no job of
    a project may. `shares` are of (pool, project), `persons` of (pool, project, person): what of
    either is missing has used nothing, at weight 1. `warm` are in the order in which jobs take
    them; no limit counts the machines of those that are on. `fingerprints` are of the queued jobs
    that run on any warm cluster with the same one. `stuck` are pools in which machines fail to be
    given back.
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
    warm: tuple[WarmCluster, ...] = ()
    fingerprints: Mapping[int, str] = field(default_factory=dict)
    stuck: Collection[str] = ()
    now_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Start:
    """Start this job now: on machines of its own, or `onto` the warm cluster of this name."""

    job_id: int
    onto: str = ""


@dataclass(slots=True)
class Wait:
    """Leave this job queued, and why. Not frozen, as there are as many as jobs that wait."""

    job_id: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class Refuse:
    """A job that can never start here; the sentence explains why."""

    job_id: int
    message: str


@dataclass(frozen=True, slots=True)
class Preempt:
    """Stop these jobs, so that this one can start; until then it waits, and why."""

    job_id: int
    victims: tuple[int, ...]
    cause: Cause


@dataclass(frozen=True, slots=True)
class Evict:
    """End these warm clusters, so that this job can start; until then it waits, and why."""

    job_id: int
    clusters: tuple[str, ...]
    cause: Cause


# What leaves a job queued, and why.
StaysQueued = Wait | Preempt | Evict
Decision = Start | Refuse | StaysQueued
