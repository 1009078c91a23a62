"""What the portal answers about machines: clusters, plans, places. Amounts are US$ as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class Cluster:
    """A cluster that exists. `kind`: row, own (the portal's name, but no row) or foreign."""

    name: str
    kind: str
    project: str
    backend: str
    status: str
    status_label: str
    note: str
    job: int | None
    job_name: str
    is_busy: bool
    infra: str
    resources: str
    num_nodes: int
    since: datetime | None
    idle_since: datetime | None
    idle_until: datetime | None
    usd_per_hour: str | None
    usd: str | None
    idle_usd: str | None
    owner: str
    can_down: bool
    can_extend: bool


@dataclass(frozen=True)
class Candidate:
    """One way in which a job could be given its machines."""

    infra: str
    instance_type: str
    cpus: str
    memory: str
    accelerators: str
    use_spot: bool
    usd_per_hour: str | None
    is_chosen: bool


@dataclass(frozen=True)
class Plan:
    """What would become of a job. `problem` says why there are no candidates."""

    backend: str
    candidates: list[Candidate]
    chosen: Candidate | None
    reasons: list[str]
    problem: str
    is_pending: bool
    max_duration_s: int | None
    usd_per_hour: str | None
    usd: str | None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Cloud:
    """A cloud, and why it is not enabled."""

    name: str
    is_enabled: bool
    reason: str


@dataclass(frozen=True)
class Gpu:
    """GPUs of one type at one place, over all its nodes."""

    infra: str
    gpu: str
    nodes: int
    total: int
    free: int


@dataclass(frozen=True)
class Infra:
    """One backend. While `is_asking` an answer is on its way."""

    backend: str
    num_nodes: int | None
    clouds: list[Cloud]
    cloud_problem: str
    gpus: list[Gpu]
    gpu_problem: str
    asked_at: datetime | None
    is_asking: bool
