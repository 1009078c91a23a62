"""The queue as values: why a job waits, and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class NamedJob:
    """Another job; one that you may not see has neither number nor names. `has`: in words."""

    job_id: int | None
    project: str
    name: str
    owner: str
    status: str
    has: str


@dataclass(frozen=True)
class BindingLimit:
    """What there is too little of. `kind`: machines, queue, project, person or group."""

    kind: str
    name: str
    what: str
    needed: float
    used: float
    cap: float


@dataclass(frozen=True)
class Waiting:
    """Why a job waits. `position` counts from 1; `basis` says from what `expected_at` follows.

    `no_estimate`, as a sentence, says why there is none.
    """

    job_id: int
    status: str
    code: str
    reason: str
    sentence: str
    since: datetime
    next_try_at: datetime | None
    position: int | None
    of: int | None
    ahead: list[NamedJob]
    limit: BindingLimit | None
    holders: list[NamedJob]
    expected_at: datetime | None
    basis: str
    no_estimate: str


@dataclass(frozen=True)
class Amount:
    """How much of one thing is used, and of how much. `cap` None: nothing limits it.

    `nominal`: a project's own part, where somebody has said one.
    """

    what: str
    used: float | None
    cap: float | None
    nominal: float | None
    free: float | None


@dataclass(frozen=True)
class Place:
    """Machines that share one order: a `pool`, or all that a `backend` has."""

    kind: str
    name: str
    backend: str
    amounts: list[Amount]
    kept: int
    problem: str
    queues: list[str]
    patience_s: int
    half_life_s: int
    reclaim: bool
    preempts_by_rank: bool


@dataclass(frozen=True)
class Queue:
    """A queue with the number of its jobs, of all projects."""

    name: str
    rank: int
    pool: str
    waiting: int
    held: int
    running: int
    preemptible: bool


@dataclass(frozen=True)
class PersonUse:
    """What one person uses of what each may have."""

    user: str
    amounts: list[Amount]


@dataclass(frozen=True)
class Quota:
    """How much may run at once. `kind`: queue, project, person, each_person."""

    id: int
    kind: str
    queue: str
    project: str
    user: str
    pool: str
    amounts: list[Amount]
    people: list[PersonUse]


@dataclass(frozen=True)
class Share:
    """What a project has used of a place; without a name: `projects` others together."""

    kind: str
    place: str
    project: str
    used_hours: float
    weight: float | None
    counts_for: float | None
    projects: int
    percent: float


@dataclass(frozen=True)
class Turn:
    """A job in its turn; one that you may not see has neither number nor names."""

    kind: str
    place: str
    position: int
    needs: str
    since: datetime
    job_id: int | None
    project: str
    name: str
    owner: str
    queue: str
    priority: int | None
    sentence: str


@dataclass(frozen=True)
class Weight:
    """A project's weight."""

    project: str
    weight: float
