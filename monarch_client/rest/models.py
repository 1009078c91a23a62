"""What the portal answers, as values. Keys a newer portal adds are ignored."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from monarch_client.errors import SpecError

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Part of a list. `next` and `previous` are cursors; None at the ends."""

    results: list[T]
    next: str | None = None
    previous: str | None = None


@dataclass(frozen=True)
class LogPage(Page[T]):
    """Part of a log. `removed` says, in a sentence, of which attempts it was removed."""

    removed: str = ""


@dataclass(frozen=True)
class Project:
    """A project, with one's own role in it."""

    slug: str
    name: str
    role: str
    state: str = "active"
    archived_at: datetime | None = None
    job_counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Member:
    """A member of a project."""

    username: str
    role: str
    is_active: bool = True


@dataclass(frozen=True)
class Me:
    """Who one is to the portal. `token` is the name of the token in use."""

    username: str
    is_admin: bool
    projects: list[Project]
    token: str | None = None
    read_only: bool = False


@dataclass(frozen=True)
class Dependency:
    """A job that comes before. `after` is success or end, `ended_as` empty while it has not."""

    job: int
    name: str
    after: str
    ended_as: str
    is_met: bool


@dataclass(frozen=True)
class Job:
    """A job as lists show it; `url` is its page. `spec` is there when one job was asked for."""

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
    hint: str
    exit_code: int | None
    num_nodes: int
    backend: str
    queue: str
    priority: int
    submitted_by: str
    rerun_of: int | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    max_duration_s: int | None
    stops_at: datetime | None
    attempt: int | None
    attempt_count: int
    is_final: bool
    can_cancel: bool
    can_hold: bool
    can_release: bool
    can_prioritize: bool
    can_extend: bool
    can_rerun: bool
    can_delete: bool
    url: str
    spec_source: str | None = None
    spec: dict[str, Any] | None = None
    usd: str | None = None
    schedule: str = ""
    preemptible: bool = False
    parent: int | None = None
    parent_attempt: int | None = None
    array: int | None = None
    array_index: int | None = None
    array_values: dict[str, str] = field(default_factory=dict)
    dependencies: list[Dependency] = field(default_factory=list)


@dataclass(frozen=True)
class Stage:
    """A stage of an attempt; `state` is pending, active, done, failed or stopped."""

    name: str
    label: str
    state: str
    started_at: datetime | None
    ended_at: datetime | None
    duration_s: float | None
    detail: str
    failure: str


@dataclass(frozen=True)
class Worker:
    """One host of an attempt."""

    rank: int
    mesh: str
    address: str
    status: str
    python: str
    pid: int | None
    exit_code: int | None
    detail: str
    ready_at: datetime | None
    ended_at: datetime | None
    ssh: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """A failure that the portal recognised: `evidence` is the line that shows it."""

    code: str
    title: str
    evidence: str
    fix: str


@dataclass(frozen=True)
class Attempt:
    """One run of a job."""

    id: int
    number: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    stop_reason: str
    message: str
    hint: str
    exit_code: int | None
    cluster_name: str
    stages: list[Stage]
    workers: list[Worker]
    infra: str = ""
    resources: str = ""
    usd_per_hour: str | None = None
    usd: str | None = None
    diagnosis: Diagnosis | None = None
    log_removed_at: datetime | None = None


@dataclass(frozen=True)
class Event:
    """One line of a job's history."""

    id: int
    at: datetime
    kind: str
    verb: str
    old_status: str
    new_status: str
    reason: str
    message: str
    actor: str
    source: str
    attempt: int | None
    line: int | None = None


@dataclass(frozen=True)
class Validation:
    """Whether a specification would be accepted; `spec` is its complete form if so."""

    valid: bool
    errors: list[SpecError]
    spec: dict[str, Any] | None = None


@dataclass(frozen=True)
class Token:
    """One of one's own tokens; `token`, the secret, only when it was just made."""

    id: int
    name: str
    project: str
    read_only: bool
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    token: str | None = None


@dataclass(frozen=True)
class Secret:
    """A secret of a project, without its value. `is_masked`: long enough to be masked in logs."""

    name: str
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str
    is_masked: bool


@dataclass(frozen=True)
class CloudEntry:
    """Credentials of a cloud that were added: `about` tells whose, never what they are."""

    kind: str
    name: str
    about: str


@dataclass(frozen=True)
class CloudState:
    """A cloud as SkyPilot sees it."""

    name: str
    is_enabled: bool
    reason: str


@dataclass(frozen=True)
class Upload:
    """A folder the portal has; specifications name it by `reference`."""

    reference: str
    digest: str
    size_bytes: int
    file_count: int


@dataclass(frozen=True)
class LogLine:
    """Line `line` of attempt `attempt`, both counted from 1 in order of arrival.

    `more`: it is very long, and the next line of its rank goes on with it.
    """

    line: int
    attempt: int
    rank: int
    stream: str
    text: str
    at: datetime | None = None
    more: bool = False

    @property
    def position(self) -> tuple[int, int]:
        """Where the line stands in the job's whole log."""
        return self.attempt, self.line
