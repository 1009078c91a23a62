"""The overview of one project, or of all projects that a user sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from monarch_client.wire.metrics import GpuUse
from monarch_client.wire.values import Moment, Usd, machines_text


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyJob:
    """A job that holds machines, or is about to."""

    id: int
    project: str
    name: str
    status: str
    status_label: str
    num_nodes: int
    gpu_type: str
    gpu_count: int
    gpu_use: GpuUse | None
    submitted_by: str
    started_at: Moment | None

    @property
    def machines(self) -> str:
        """The nodes with their GPUs, such as `8 x H100:8`."""
        return machines_text(self.num_nodes, self.gpu_type, self.gpu_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A queued job, why it waits and when it is expected to start."""

    id: int
    project: str
    name: str
    num_nodes: int
    gpu_type: str
    gpu_count: int
    wait_reason: str
    message: str
    since: Moment
    expected_at: Annotated[Moment | None, Meta(description="Null: there is no estimate.")]
    next_try_at: Annotated[
        Moment | None, Meta(description="When machines are requested again, after a failed try.")
    ] = None

    @property
    def machines(self) -> str:
        """The nodes with their GPUs, such as `8 x H100:8`."""
        return machines_text(self.num_nodes, self.gpu_type, self.gpu_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFor:
    """The number of queued jobs that wait for one reason."""

    reason: str
    label: str
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureCause:
    """Jobs that failed for one cause in the last 24 hours."""

    cause: Annotated[str, Meta(description="The diagnosis, else the exception, else the reason.")]
    stop_reason: str
    is_diagnosis: bool
    jobs: int
    last_job: Annotated[int, Meta(description="The newest of them.")]
    last_name: str
    last_project: str
    last_at: Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolGpus:
    """GPUs of one type in one pool, or in one infrastructure: those in use of all."""

    name: str
    used: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpusOfType:
    """The GPUs of one type: what the projects hold, and what pools and infrastructures have."""

    gpu: str
    held: Annotated[int, Meta(description="In the clusters of these projects.")]
    idle: Annotated[int, Meta(description="Held by idle warm clusters.")]
    use: Annotated[float | None, Meta(description="Percent, of those whose hosts report it, now.")]
    pools: list[PoolGpus]
    fleet: Annotated[list[PoolGpus], Meta(description="Infrastructures that list their GPUs.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleMachines:
    """Machines that cost something and compute nothing: a warm cluster, or idle GPUs of a job."""

    project: str
    cluster: str
    job: Annotated[int | None, Meta(description="On it, or the last one on it.")]
    job_name: str
    is_busy: Annotated[bool, Meta(description="Whether the job runs: its GPUs are idle.")]
    num_nodes: int
    gpu_type: str
    gpu_count: int
    usd_per_hour: Usd | None
    idle_since: Moment
    ends_at: Annotated[Moment | None, Meta(description="When it is stopped or terminated.")]

    @property
    def machines(self) -> str:
        """The nodes with their GPUs, such as `8 x H100:8`."""
        return machines_text(self.num_nodes, self.gpu_type, self.gpu_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Costs of today and of this calendar month (UTC), beside the budget."""

    today_usd: Usd
    month_usd: Usd
    forecast_usd: Annotated[
        Usd, Meta(description="Of the whole month, if the rest costs as much as the last week.")
    ]
    budget_usd: Annotated[
        Usd | None, Meta(description="Null: a project without a budget is among them.")
    ]
    usd_per_hour: Annotated[Usd, Meta(description="The price of all machines held now.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRun:
    """The next time of a schedule."""

    project: str
    schedule: str
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedJob:
    """A job that ended."""

    id: int
    project: str
    name: str
    status: str
    at: Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Jobs that ended since a moment: numbers by status, and the newest of them."""

    since: Moment
    counts: dict[str, int]
    newest: list[EndedJob]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectNow:
    """One project in numbers."""

    project: str
    running: int
    waiting: int
    failed: Annotated[int, Meta(description="In the last 24 hours.")]
    spending: Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The state of jobs, machines and costs. Lists have the first few, numbers count all."""

    project: Annotated[str, Meta(description="Empty: all projects that you see.")]
    running: int
    waiting: int
    failed: Annotated[int, Meta(description="In the last 24 hours.")]
    busy_jobs: Annotated[list[BusyJob], Meta(description="Those with the most GPUs first.")]
    waiting_jobs: Annotated[list[WaitingJob], Meta(description="The highest priority first.")]
    waiting_for: list[WaitingFor]
    failures: Annotated[list[FailureCause], Meta(description="The most frequent cause first.")]
    gpus: list[GpusOfType]
    idle: Annotated[list[IdleMachines], Meta(description="The highest price first.")]
    idle_usd_per_hour: Usd
    ending_nodes: Annotated[int, Meta(description="Nodes that are being terminated.")] = 0
    spending: Spending
    next_runs: list[NextRun]
    changes: Changes
    projects: Annotated[list[ProjectNow], Meta(description="Each of them, if there are several.")]
