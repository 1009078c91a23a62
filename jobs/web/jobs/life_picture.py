"""The time line of one job: how long it waited, started, ran and recovered. Pure.

While it has machines the parts are the stages of its attempts, as at the head of the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.statuses import JobStatus, StageName
from monarch_client.wire.attempts import Attempt, Stage
from monarch_client.wire.jobs import Event, Job

# Of the width, in percent: the shortest part can be seen, and a name fits into a wide one.
_LEAST_WIDTH, _NAMED_FROM = 0.8, 9.0
# The stages, each in the color of the status in which it happens. What follows has no status.
_STATUS_OF: Mapping[str, JobStatus] = {
    StageName.LAUNCH: JobStatus.PROVISIONING,
    StageName.SETUP: JobStatus.SETTING_UP,
    StageName.WORKERS: JobStatus.SETTING_UP,
    StageName.RUN: JobStatus.RUNNING,
}


@dataclass(frozen=True, slots=True)
class Part:
    """A stage, or the time in a status. `ended_at` is None while it lasts; widths in percent."""

    status: str
    label: str
    began_at: datetime
    ended_at: datetime | None
    attempt: int | None
    detail: str
    x: float
    width: float

    @property
    def is_named(self) -> bool:
        """Whether the picture has space for the label."""
        return self.width >= _NAMED_FROM


@dataclass(frozen=True, slots=True)
class _Span:
    status: str
    label: str
    at: datetime
    until: datetime | None
    attempt: int | None
    detail: str


def parts_of(
    job: Job, events: Sequence[Event], attempts: Iterable[Attempt], now: datetime
) -> list[Part]:
    """Return the parts of a job's life in order; empty while it waits for its first start."""
    stages = {each.number: _begun(each.stages) for each in attempts}
    spans = list(_spans(job, events, stages))
    if len(spans) < 2:  # noqa: PLR2004 - the page says already that it waits
        return []
    end = job.ended_at or now
    seconds = [max(0.0, ((each.until or end) - each.at).total_seconds()) for each in spans]
    widths = _widths(seconds)
    return [
        Part(
            status=span.status,
            label=span.label,
            began_at=span.at,
            ended_at=span.until or job.ended_at,
            attempt=span.attempt,
            detail=span.detail,
            x=round(sum(widths[:number]), 2),
            width=round(widths[number], 2),
        )
        for number, span in enumerate(spans)
    ]


def _begun(stages: Iterable[Stage]) -> list[Stage]:
    return [each for each in stages if each.name in _STATUS_OF and each.started_at]


def _spans(
    job: Job, events: Sequence[Event], stages: Mapping[int, Sequence[Stage]]
) -> Iterator[_Span]:
    """Yield the statuses in order, with the stages of each attempt in place of theirs."""
    moves = list(_moves(job, events))
    shown: set[int] = set()
    for move, then in zip(moves, [*moves[1:], None], strict=True):
        status = JobStatus(move.status)
        number = move.attempt
        if status in _STATUS_OF.values() and number is not None and stages.get(number):
            if number not in shown:
                shown.add(number)
                yield from _spans_of(number, stages[number])
        elif not status.is_final:
            label = "Waiting" if status == JobStatus.QUEUED else status.label
            until = then.at if then else None
            yield _Span(status, label, move.at, until, number, move.detail)


def _spans_of(attempt: int, stages: Iterable[Stage]) -> Iterator[_Span]:
    for stage in stages:
        if stage.started_at is not None:
            status = _STATUS_OF[stage.name]
            yield _Span(status, stage.label, stage.started_at, stage.ended_at, attempt, "")


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
