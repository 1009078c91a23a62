"""The time line of one job: how long it waited, started, ran and recovered. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.statuses import JobStatus
from monarch_client.wire.jobs import Event, Job

# Of the width, in percent: the shortest part can be seen, and a name fits into a wide one.
_LEAST_WIDTH, _NAMED_FROM = 0.8, 9.0


@dataclass(frozen=True, slots=True)
class Part:
    """A time in one status. `ended_at` is None while it lasts; `x` and `width` are in percent."""

    status: str
    began_at: datetime
    ended_at: datetime | None
    attempt: int | None
    detail: str
    x: float
    width: float

    @property
    def label(self) -> str:
        """The status; a queued job waits."""
        is_queued = self.status == JobStatus.QUEUED
        return "Waiting" if is_queued else JobStatus(self.status).label

    @property
    def is_named(self) -> bool:
        """Whether the picture has space for the label."""
        return self.width >= _NAMED_FROM


def parts_of(job: Job, events: Sequence[Event], now: datetime) -> list[Part]:
    """Return the parts of a job's life in order; empty while it waits for its first start."""
    moves = list(_moves(job, events))
    end = job.ended_at or now
    spans = [
        (move, then.at if then else end)
        for move, then in zip(moves, [*moves[1:], None], strict=True)
        if not JobStatus(move.status).is_final
    ]
    if len(spans) < 2:  # noqa: PLR2004 - the page says already that it waits
        return []
    seconds = [max(0.0, (until - move.at).total_seconds()) for move, until in spans]
    widths = _widths(seconds)
    return [
        Part(
            status=move.status,
            began_at=move.at,
            ended_at=until if job.is_final or number < len(spans) - 1 else None,
            attempt=move.attempt,
            detail=move.detail,
            x=round(sum(widths[:number]), 2),
            width=round(widths[number], 2),
        )
        for number, (move, until) in enumerate(spans)
    ]


@dataclass(frozen=True, slots=True)
class _Move:
    status: str
    at: datetime
    attempt: int | None
    detail: str


def _moves(job: Job, events: Iterable[Event]) -> Iterable[_Move]:
    """Yield the changes of status; the first one is the submission."""
    found = [
        _Move(event.new_status, event.at, event.attempt, event.message)
        for event in events
        if event.new_status and event.new_status != event.old_status
    ]
    if not found or found[0].status != JobStatus.QUEUED:
        found.insert(0, _Move(JobStatus.QUEUED, job.created_at, None, ""))
    if job.status == JobStatus.QUEUED and found[-1].status == JobStatus.QUEUED:
        found[-1] = _Move(JobStatus.QUEUED, found[-1].at, None, job.wait_message)
    return found


def _widths(seconds: Sequence[float]) -> list[float]:
    """Return widths in percent in proportion to `seconds`, but none too small to be seen."""
    total = sum(seconds) or 1.0
    raw = [max(_LEAST_WIDTH, 100.0 * each / total) for each in seconds]
    return [100.0 * each / sum(raw) for each in raw]
