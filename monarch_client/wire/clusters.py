"""Clusters, plans, and where jobs can run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from monarch_client.wire.metrics import GpuUse
from monarch_client.wire.queue import Forecast
from monarch_client.wire.values import Moment, Usd, machines_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster that exists. `kind`: row, own (the portal's name, but no row) or foreign."""

    name: str
    kind: str
    project: Annotated[str, Meta(description="Empty for those without a row.")]
    backend: str
    status: str
    status_label: str
    note: str
    job: Annotated[int | None, Meta(description="The last job on it.")]
    job_name: str
    is_busy: Annotated[bool, Meta(description="Whether that job is still on it.")]
    infra: str
    resources: str
    num_nodes: int
    gpu_type: Annotated[str, Meta(description="In capitals; empty: no GPU was requested.")] = ""
    gpu_count: Annotated[int, Meta(description="Of all nodes together.")] = 0
    gpu_use: Annotated[
        GpuUse | None, Meta(description="Of the job on it. Null: no host reported a GPU.")
    ] = None
    submitted_by: Annotated[str, Meta(description="Who submitted its last job.")] = ""
    since: Moment | None
    idle_since: Moment | None
    idle_until: Moment | None
    idle_then: Annotated[str, Meta(description="stop or down: what happens to it then.")] = ""
    usd_per_hour: Annotated[Usd | None, Meta(description="Of all nodes together.")]
    usd: Annotated[Usd | None, Meta(description="What it has cost so far, as its backend reports.")]
    idle_usd: Annotated[Usd | None, Meta(description="The part of it that belongs to no job.")]
    owner: Annotated[str, Meta(description="Of those without a row: who made it.")]
    can_down: bool
    can_extend: bool
    can_stop: Annotated[
        bool, Meta(description="It is idle; its infrastructure may still refuse.")
    ] = False
    ssh: Annotated[
        str, Meta(description="The command to reach its first node; empty: there is none.")
    ] = ""

    @property
    def machines(self) -> str:
        """The nodes with their GPUs, such as `8 x H100:8`."""
        return machines_text(self.num_nodes, self.gpu_type, self.gpu_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One choice of machines for a job."""

    infra: str
    instance_type: str
    cpus: str
    memory: str
    accelerators: str
    use_spot: bool
    usd_per_hour: Annotated[Usd | None, Meta(description="Of all nodes together.")]
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultValue:
    """A value that a specification leaves open, and what sets it."""

    key: str
    value: str
    source: Annotated[str, Meta(description="Such as the limit of a project.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The machines of a job, or of each job of an array. While `is_pending`, request it again."""

    name: Annotated[str, Meta(description="Of the job or array.")] = ""
    backend: str
    candidates: list[Candidate]
    chosen: Candidate | None
    reasons: Annotated[list[str], Meta(description="Why there are not more candidates.")]
    problem: Annotated[str, Meta(description="Why there is no candidate.")]
    is_pending: bool
    max_duration_s: int | None
    usd_per_hour: Annotated[Usd | None, Meta(description="Of the chosen one.")]
    usd: Annotated[
        Usd | None,
        Meta(description="Of the chosen one, for as long as one job may run."),
    ]
    summary: Annotated[str, Meta(description="The size of the job, for people.")] = ""
    num_jobs: Annotated[int, Meta(description="More than 1: those of the array.")] = 1
    total_usd: Annotated[
        Usd | None, Meta(description="Of all its jobs, each for as long as it may run.")
    ] = None
    defaults: Annotated[
        list[DefaultValue], Meta(description="The values that the portal sets.")
    ] = field(default_factory=list)
    warnings: Annotated[list[str], Meta(description="What to consider before submitting it.")] = (
        field(default_factory=list)
    )
    queue: str = ""
    start: Annotated[
        Forecast | None,
        Meta(description="What the scheduler would do with it if it were submitted now."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """The plans of jobs that are submitted together, in their order."""

    results: list[Plan]
    num_jobs: Annotated[int, Meta(description="Those of arrays included.")]
    total_usd: Annotated[
        Usd | None,
        Meta(description="Of all jobs, each for as long as it may run. Null: one is unknown."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """A cloud, and why it is not enabled."""

    name: str
    is_enabled: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """GPUs of one type in one infrastructure, over all its nodes."""

    infra: str
    gpu: str
    nodes: int
    total: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Infra:
    """One backend with its clouds and GPUs. While `is_asking`, request it again in a moment."""

    backend: str
    num_nodes: int | None
    clouds: list[Cloud]
    cloud_problem: str
    gpus: list[Gpu]
    gpu_problem: str
    asked_at: Moment | None
    is_asking: bool
