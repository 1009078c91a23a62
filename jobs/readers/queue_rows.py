"""What `queue_state` answers: plain rows, for page, REST and command line."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from jobs.scheduling.amounts import counted, usd
from jobs.scheduling.limits import USD_PER_HOUR


@dataclass(frozen=True, slots=True)
class AmountRow:
    """How much of one thing is used, of how much. `cap` None: nothing limits it here."""

    what: str  # jobs, nodes, gpus, gpus:TYPE, usd_per_hour
    used: float | None
    cap: float | None
    nominal: float | None = None  # a project's own part; what it has beyond is borrowed

    @property
    def free(self) -> float | None:
        """What is left, never negative; None where nobody can say."""
        return None if self.cap is None or self.used is None else max(0.0, self.cap - self.used)

    @property
    def percent(self) -> float:
        """Of a bar."""
        if not self.used:
            return 0.0
        return 100.0 if not self.cap else min(100.0, 100.0 * self.used / self.cap)

    @property
    def words(self) -> str:
        """As people read it: `3 of 8 nodes`, `at most 8 nodes`, `3 nodes`; `$3.20 of $40.00`."""
        if self.cap is None:
            return counted(self.what, self.used or 0)
        if self.used is None:
            return f"at most {counted(self.what, self.cap)}"
        if self.what == USD_PER_HOUR:
            return f"{usd(self.used)} of {usd(self.cap)} per hour"
        return f"{self.used:g} of {counted(self.what, self.cap)}"

    def unused(self) -> AmountRow:
        """The same without saying how much is used."""
        return replace(self, used=None)


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """Machines that share one order: a pool, or all that a backend has. Times in seconds."""

    kind: str  # pool, backend
    name: str
    backend: str
    amounts: list[AmountRow]
    kept: int = 0  # nodes of those used that are on without a job
    problem: str = ""
    queues: list[str] = field(default_factory=list)
    patience_s: int = 0
    half_life_s: int = 0
    reclaim: bool = False
    preempts_by_rank: bool = False


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue with its jobs; without a pool they share what their backend has."""

    name: str
    rank: int
    pool: str
    waiting: int
    held: int
    running: int
    preemptible: bool = False


@dataclass(frozen=True, slots=True)
class PersonRow:
    """What one person uses of what each may have."""

    user: str
    amounts: list[AmountRow]


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One quota and what is used of it. `kind`: queue, project, person, each_person."""

    id: int
    kind: str
    queue: str
    project: str
    user: str
    pool: str
    amounts: list[AmountRow]
    people: list[PersonRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ShareRow:
    """What a project has used of a place, in decayed unit-hours; without a name: `projects` others.

    `percent` is of what all have used there.
    """

    kind: str
    place: str
    project: str
    used_hours: float
    weight: float | None
    projects: int = 1
    percent: float = 0.0

    @property
    def counts_for(self) -> float | None:
        """What the order compares: the least comes first."""
        return None if self.weight is None else self.used_hours / self.weight

    def of(self, total: float) -> ShareRow:
        """The same with its part of `total`."""
        return replace(self, percent=100.0 * self.used_hours / total if total else 0.0)


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A job in its turn; of a project that the reader does not see, without name and number."""

    kind: str
    place: str
    position: int
    needs: str
    since_s: float
    job_id: int | None = None
    project: str = ""
    name: str = ""
    owner: str = ""
    queue: str = ""
    priority: int | None = None
    sentence: str = ""

    @property
    def since(self) -> datetime:
        """Since when it waits."""
        return datetime.fromtimestamp(self.since_s, UTC)

    def named(self, **known: Any) -> WaitingRow:
        """The same for somebody who sees its project."""
        return replace(self, **known)


def place_words(key: str) -> tuple[str, str]:
    """Kind and name of the machines behind a planner's key, such as `pool:a100`."""
    kind, _, name = key.partition(":")
    return kind, name
