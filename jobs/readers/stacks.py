"""The stack dumps of an attempt: who asked when, and what came of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from jobs.models import Attempt, Job, StackDump
from jobs.permissions import Actor, job_for, may, stacks_verb
from jobs.policies.stack_groups import StackGroup, stack_groups
from jobs.readers.chosen_attempt import chosen_attempt
from jobs.statuses import StackState
from monarch_client.wire import stacks as wire

NO_ANSWER = "The node has not responded. A late response is shown here."


@dataclass(frozen=True, slots=True)
class StackChoice:
    """`only`: the one dump of that id, of whatever attempt.

    `shown`: the texts of that one alone, else of the newest.
    """

    attempt: int | None = None
    only: int | None = None
    shown: int | None = None


def job_stacks(
    actor: Actor, slug: str, job_id: int, choice: StackChoice | None = None
) -> wire.Stacks:
    """Return the stack dumps of an attempt, the newest unless `choice` names one.

    NotFoundError as for `job_for`, or for an attempt that does not exist.
    """
    choice = choice or StackChoice()
    job = job_for(actor, slug, job_id)
    attempt = _attempt(job, choice)
    if attempt is None:
        return wire.Stacks(
            attempt=None,
            is_over=False,
            is_final=job.is_final,
            can_ask=False,
            ranks=job.num_hosts,
            dumps=[],
            groups=[],
            asked_together=[],
        )
    is_over = attempt.ended_at is not None
    rows = _rows(attempt, choice)
    dumps = _dumps(rows, choice)
    batch = [] if choice.only or choice.shown else _asked_together(rows)
    is_pending = any(dump.state == StackState.REQUESTED for dump in dumps)
    return wire.Stacks(
        attempt=attempt.number,
        is_over=is_over,
        is_final=is_over and not is_pending and (job.is_final or choice.attempt is not None),
        can_ask=not is_over and _may_ask(actor, job),
        ranks=job.num_hosts,
        dumps=dumps,
        groups=_groups(batch),
        asked_together=[row.pk for row in batch],
    )


def stack_dump_view(dump: StackDump) -> wire.StackDump:
    """Return one dump with its texts."""
    return _view(dump, dump.processes)


def _may_ask(actor: Actor, job: Job) -> bool:
    return may(actor, stacks_verb(actor, job), job.project)


def _attempt(job: Job, choice: StackChoice) -> Attempt | None:
    found = job.attempts.filter(stack_dumps=choice.only).first() if choice.only else None
    return found or chosen_attempt(job, choice.attempt)


def _rows(attempt: Attempt, choice: StackChoice) -> list[StackDump]:
    """Return the dumps of an attempt, the newest first, without their texts."""
    rows = attempt.stack_dumps.select_related("asked_by").order_by("-pk")
    if choice.only is not None:
        rows = rows.filter(pk=choice.only)
    # Texts may be long: of many, those of one are read.
    return list(rows.defer("processes"))


def _dumps(rows: list[StackDump], choice: StackChoice) -> list[wire.StackDump]:
    shown = next((row for row in rows if row.pk == choice.shown), rows[0] if rows else None)
    return [_view(row, row.processes if row is shown else []) for row in rows]


def _asked_together(rows: list[StackDump]) -> list[StackDump]:
    """Return the dumps of the newest request for several ranks, by rank; none without one."""
    sizes = Counter(row.asked_at for row in rows)
    newest = max((asked_at for asked_at, size in sizes.items() if size > 1), default=None)
    return sorted((row for row in rows if row.asked_at == newest), key=lambda row: row.rank)


def _groups(batch: list[StackDump]) -> list[wire.StackGroup]:
    ended = tuple(row.pk for row in batch if row.state != StackState.REQUESTED)
    return [
        wire.StackGroup(
            ranks=list(group.ranks),
            processes=group.processes,
            where=group.where,
            frames=list(group.frames),
        )
        for group in _groups_of(ended)
    ]


# Open pages ask every few seconds. A dump that has ended does not change.
@lru_cache(maxsize=8)
def _groups_of(ended: tuple[int, ...]) -> list[StackGroup]:
    """Return the groups of dumps that have ended, by their ids."""
    rows = StackDump.objects.filter(pk__in=ended).order_by("rank")
    found = rows.values_list("rank", "processes")
    return stack_groups(
        (rank, process["text"]) for rank, processes in found for process in processes
    )


def _view(row: StackDump, processes: list[dict[str, object]]) -> wire.StackDump:
    is_overdue = row.is_overdue
    return wire.StackDump(
        id=row.pk,
        rank=row.rank,
        pid=row.pid,
        asked_by=row.asked_by.get_username() if row.asked_by else "",
        asked_at=row.asked_at,
        ended_at=row.ended_at,
        state=StackState.FAILED if is_overdue else row.state,
        why=NO_ANSWER if is_overdue else row.why,
        left_out=row.left_out,
        processes=[wire.ProcessStacks(**each) for each in processes],  # type: ignore[arg-type]
    )
