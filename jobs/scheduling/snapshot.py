"""What a plan may look at: plain values, no database."""

from __future__ import annotations

from dataclasses import dataclass, field

from jobs.scheduling.kept import KeptCluster, Wish


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that could start now."""

    job_id: int
    backend_name: str
    num_nodes: int
    priority: int  # 0..100, higher first
    wish: Wish | None = None  # only of a job that would go onto a cluster that was kept


@dataclass(frozen=True, slots=True)
class Capacity:
    """A backend's room in nodes; `total` None means that only quotas limit it."""

    total: int | None
    used: int = 0
    kept: int = 0  # of those used: on, but without a job
    problem: str = ""  # why nothing can start there now; shown to those who wait

    @property
    def free(self) -> int | None:
        """Nodes not in use, never negative; None without a limit."""
        return None if self.total is None else max(0, self.total - self.used)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The queue, oldest first, the room there is, and the clusters that take jobs, best first."""

    queued: tuple[QueuedJob, ...]
    capacity: dict[str, Capacity] = field(default_factory=dict)
    kept: tuple[KeptCluster, ...] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """Let this job start now."""

    job_id: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave this job queued, and why: the sentence is shown to its owner."""

    job_id: int
    message: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """This job can never start here; the sentence says why."""

    job_id: int
    message: str


Decision = Start | Wait | Refuse
