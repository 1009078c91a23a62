"""The workers of an attempt: each of a few; of many some, and what is counted of all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from jobs.statuses import WorkerStatus
from monarch_client.wire.attempts import Worker

# The page is rendered again with every change of the job.
MOST_ROWS = 100
MOST_CODES = 5
TROUBLE = "trouble"
_UNWELL = frozenset({WorkerStatus.LOST, WorkerStatus.UNKNOWN})


@dataclass(frozen=True, slots=True)
class WorkersChoice:
    """Some of the workers. `name`: as the address names it."""

    name: str
    words: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class WorkersPart:
    """The workers shown. `choices` and `summary` are empty where all are shown."""

    rows: list[Worker]
    summary: str = ""
    choices: tuple[WorkersChoice, ...] = ()
    left_out: int = 0


def workers_part(workers: list[Worker], num_nodes: int, requested: str) -> WorkersPart:
    """Select, of many workers, the group `requested`; else those in trouble, or the first ones.

    Of few all are selected, those in trouble first.
    """
    workers = _by_urgency(workers)
    if len(workers) <= MOST_ROWS:
        return WorkersPart(workers)
    groups = _groups(workers)
    chosen = requested if requested in groups else next(iter(groups))
    rows = groups[chosen]
    choices = (
        WorkersChoice(name, _words(name, group), name == chosen) for name, group in groups.items()
    )
    return WorkersPart(
        rows[:MOST_ROWS],
        _summary(workers, num_nodes),
        tuple(choices),
        max(0, len(rows) - MOST_ROWS),
    )


def _groups(workers: list[Worker]) -> dict[str, list[Worker]]:
    """Group workers by their name in the address: those in trouble, if any, then all by rank."""
    groups: dict[str, list[Worker]] = {}
    if trouble := [each for each in workers if is_in_trouble(each)]:
        groups[TROUBLE] = trouble
    for worker in sorted(workers, key=lambda each: each.rank):
        groups.setdefault(str(worker.rank // MOST_ROWS * MOST_ROWS), []).append(worker)
    return groups


def is_in_trouble(worker: Worker) -> bool:
    """Whether the page points at a worker: it was lost, failed, or is silent."""
    has_failed = bool(worker.exit_code) and worker.ended_after is None
    return worker.status in _UNWELL or has_failed or worker.is_silent


def _by_urgency(workers: list[Worker]) -> list[Worker]:
    """Return those in trouble before the others, and first the one that the others ended for."""
    first = next((each.ended_after for each in workers if each.ended_after is not None), None)
    return sorted(
        workers, key=lambda each: (not is_in_trouble(each), each.rank != first, each.rank)
    )


def _words(name: str, group: list[Worker]) -> str:
    return f"Unhealthy: {len(group)}" if name == TROUBLE else f"{group[0].rank}–{group[-1].rank}"


def _summary(workers: list[Worker], num_nodes: int) -> str:
    """Count the workers by status, and the ended ones by how they ended, in text."""
    statuses = Counter(worker.status for worker in workers)
    parts = [
        f"{statuses[status]} {status.label.lower()}" for status in WorkerStatus if statuses[status]
    ]
    missing = num_nodes - len(workers)
    if missing > 0:
        parts.append(f"{missing} not heard of")
    said = f"{max(num_nodes, len(workers))} nodes: {', '.join(parts)}."
    codes = Counter(worker.exit_code for worker in workers if worker.exit_code is not None)
    if not codes:
        return said
    counts_shown = [f"{code} on {count}" for code, count in codes.most_common(MOST_CODES)]
    others = codes.total() - sum(count for _, count in codes.most_common(MOST_CODES))
    if others:
        counts_shown.append(f"others on {others}")
    return f"{said} Exit code {', '.join(counts_shown)}."
