"""Jobs, their history, and what is reported about a specification."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from monarch_client.errors import SpecError
from monarch_client.wire.metrics import GpuUse
from monarch_client.wire.values import Moment, Usd, machines_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as lists show it."""

    id: int
    project: str
    name: str
    kind: str
    kind_label: str
    status: str
    status_label: str
    wait_reason: str
    wait_message: str
    stop_reason: str
    message: str
    diagnosis: Annotated[
        str,
        Meta(description="Title of the diagnosis of a failed job's last attempt; empty: none."),
    ] = ""
    hint: str
    exit_code: int | None
    num_nodes: int
    gpu_type: Annotated[str, Meta(description="In capitals; empty: it requests no GPU.")] = ""
    gpu_count: Annotated[int, Meta(description="Of all nodes together.")] = 0
    gpu_use: Annotated[
        GpuUse | None, Meta(description="Of its last attempt. Null: no host reported a GPU.")
    ] = None
    backend: str
    queue: str
    priority: int
    preemptible: Annotated[
        bool, Meta(description="It may be stopped for others: it or its queue permits that.")
    ] = False
    submitted_by: str
    rerun_of: int | None
    parent: Annotated[int | None, Meta(description="The job whose program submitted it.")] = None
    parent_attempt: Annotated[int | None, Meta(description="In which attempt.")] = None
    schedule: Annotated[
        str, Meta(description="Name of the schedule that made it; empty: a person did.")
    ] = ""
    array: Annotated[int | None, Meta(description="The array it is part of.")] = None
    array_index: Annotated[int | None, Meta(description="Its index there, from 0.")] = None
    array_values: Annotated[dict[str, str], Meta(description="Its value there for each name.")] = (
        field(default_factory=dict)
    )
    has_dependencies: Annotated[bool, Meta(description="It starts after other jobs.")] = False
    has_dependents: Annotated[bool, Meta(description="Other jobs start after it.")] = False
    labels: dict[str, str] = field(default_factory=dict)
    note: Annotated[str, Meta(description="A remark of its users.")] = ""
    created_at: Moment
    started_at: Moment | None
    ended_at: Moment | None
    max_duration_s: Annotated[
        int | None,
        Meta(description="With all extensions, within the administrator's limit."),
    ]
    stops_at: Annotated[
        Moment | None, Meta(description="When the running attempt reaches max_duration_s.")
    ]
    attempt: int | None
    attempt_count: int
    usd: Annotated[Usd | None, Meta(description="What its attempts have cost.")] = None
    is_final: bool
    can_cancel: bool
    can_hold: bool
    can_release: bool
    can_prioritize: bool
    can_extend: bool
    can_rerun: bool
    can_label: Annotated[bool, Meta(description="Labels and note.")] = False
    can_delete: bool
    url: Annotated[str, Meta(description="The job's page.")]

    @property
    def machines(self) -> str:
        """The nodes with their GPUs, such as `8 x H100:8`."""
        return machines_text(self.num_nodes, self.gpu_type, self.gpu_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A job that comes before."""

    job: int
    name: str
    after: Annotated[str, Meta(description="What it has to do: success or end.")]
    ended_as: Annotated[
        str, Meta(description="The status it ended as; empty while it has not ended.")
    ]
    is_met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail(Job):
    """A job with its specification, and the jobs it waits or waited for."""

    dependencies: list[Dependency] = field(default_factory=list)
    spec_source: str
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Jobs that were submitted together, in the order of their specifications."""

    results: list[Job]


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """An array with its jobs; of those that were run again, the newest."""

    id: int
    project: str
    name: str
    size: int
    max_parallel: int | None
    values: dict[str, list[str]]
    counts: Annotated[dict[str, int], Meta(description="The number of its jobs in each status.")]
    deleted: Annotated[int, Meta(description="The number of its jobs that were deleted.")] = 0
    submitted_by: str
    created_at: Moment
    ended_at: Moment | None
    is_final: bool
    can_cancel: bool
    can_rerun_failed: bool
    jobs: Annotated[list[Job], Meta(description="A page of them, by index.")]
    next: Annotated[str | None, Meta(description="The cursor of the jobs after these.")] = None
    previous: Annotated[str | None, Meta(description="The cursor of those before.")] = None
    url: Annotated[str, Meta(description="The array's page.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change, with who, when and from where."""

    id: int
    at: Moment
    kind: str
    verb: str
    old_status: str
    new_status: str
    reason: str
    message: str
    actor: str
    source: str
    attempt: int | None
    line: Annotated[int | None, Meta(description="Of the attempt's log.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The check of a specification, or of all in a YAML text of several documents."""

    valid: bool
    errors: Annotated[
        list[SpecError],
        Meta(description="Each with its `document`, from 0; lines are those of the whole text."),
    ]
    spec: Annotated[
        dict[str, Any] | None,
        Meta(description="The complete form of a valid specification; null for several."),
    ] = None
    num_jobs: Annotated[
        int, Meta(description="The jobs that a submission makes, those of arrays included.")
    ] = 0
    summary: Annotated[str, Meta(description="The size of the job, for people.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A folder that the project has; a specification names it by `reference`."""

    reference: str
    digest: str
    size_bytes: int
    file_count: int
    created_at: Moment
