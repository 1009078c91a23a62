"""The queue: machines, queues, quotas, shares, and why a job waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from monarch_client.wire.values import Moment

Latest = Annotated[
    Moment | None,
    Meta(description="Its start at the latest, by max_duration, where it is probably sooner."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """The use of one resource and its limit."""

    what: Annotated[str, Meta(description="jobs, nodes, gpus, gpus:TYPE, or usd_per_hour.")]
    used: float | None
    cap: Annotated[float | None, Meta(description="Null: nothing limits it.")]
    nominal: Annotated[float | None, Meta(description="A project's own part. Null: none is set.")]
    free: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Machines that share one order."""

    kind: Annotated[str, Meta(description="pool, or backend: all that it has.")]
    name: str
    backend: str
    amounts: list[Amount]
    kept: Annotated[int, Meta(description="Free nodes in idle warm clusters.")]
    ending: Annotated[int, Meta(description="Nodes that are being terminated.")] = 0
    problem: str
    queues: list[str]
    patience_s: int
    half_life_s: int
    reclaim: Annotated[bool, Meta(description="Projects take their nominal part back.")]
    preempts_by_rank: Annotated[bool, Meta(description="Queues take from lower ones.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue with the number of its jobs, of all projects."""

    name: str
    rank: int
    pool: str
    waiting: int
    held: int
    running: int
    preemptible: Annotated[bool, Meta(description="All its jobs may be stopped for others.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonUse:
    """The part of a quota for each person that one of them uses."""

    user: str
    amounts: list[Amount]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A limit on what runs at once, and its use."""

    id: int
    kind: Annotated[str, Meta(description="queue, project, person or each_person.")]
    queue: str
    project: str
    user: str
    pool: Annotated[str, Meta(description="Empty: wherever it runs.")]
    amounts: list[Amount]
    people: list[PersonUse]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The usage of a pool or backend by a project; the least for its weight comes first."""

    kind: str
    place: str
    project: Annotated[str, Meta(description="Empty: all others together.")]
    used_hours: Annotated[
        float, Meta(description="Decayed GPU hours, or node hours where there are no GPUs.")
    ]
    weight: float | None
    counts_for: Annotated[float | None, Meta(description="used_hours divided by weight.")]
    projects: int
    percent: Annotated[float, Meta(description="Of what all projects have used there.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A waiting job; one of a project that you do not see has neither number nor names."""

    kind: str
    place: str
    position: Annotated[int, Meta(description="From 1, among those that wait there.")]
    needs: str
    since: Moment
    job_id: int | None
    project: str
    name: str
    owner: str
    queue: str
    priority: int | None
    sentence: str
    expected_at: Annotated[Moment | None, Meta(description="An estimate of its start.")] = None
    basis: Annotated[
        str,
        Meta(description="`next`: now; `bounds`: at the latest; `past_runs`: probably."),
    ] = ""
    latest_at: Latest = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A project's weight."""

    project: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedJob:
    """Another job; one of a project that you do not see has neither number nor names."""

    job_id: int | None
    project: str
    name: str
    owner: str
    status: str
    has: Annotated[str, Meta(description="The amount that it uses of the resource that is short.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingLimit:
    """The resource that is short."""

    kind: Annotated[str, Meta(description="machines, queue, project, person or group.")]
    name: str
    what: Annotated[str, Meta(description="jobs, nodes, gpus, gpus:TYPE, or usd_per_hour.")]
    needed: float
    used: float
    cap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The scheduler's decision about a queued job, computed at this moment."""

    code: Annotated[str, Meta(description="Stable, for programs.")]
    reason: Annotated[str, Meta(description="Its class, as `wait_reason`.")]
    sentence: str
    position: Annotated[
        int | None, Meta(description="From 1, among those that wait for the same machines.")
    ]
    of: int | None
    ahead: Annotated[list[NamedJob], Meta(description="The last ten before it.")]
    limit: BindingLimit | None
    holders: Annotated[list[NamedJob], Meta(description="The ten that use most of it.")]
    expected_at: Annotated[Moment | None, Meta(description="An estimate of its start.")]
    basis: Annotated[
        str,
        Meta(description="`bounds`: at the latest, by max_duration; `past_runs`: probably."),
    ]
    no_estimate: Annotated[
        str, Meta(description="Why there is no estimate, as a sentence, where that is known.")
    ]
    latest_at: Latest = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(Forecast):
    """The reason why a job waits, computed at this moment."""

    job_id: int
    status: str
    since: Moment
    next_try_at: Moment | None
