"""Asking a node of a running job where its Python processes stand."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jobs.actions.jobs.history import note_action
from jobs.actions.jobs.present import keep
from jobs.audit.record import record
from jobs.errors import ConflictError, NotFoundError
from jobs.ground import clock
from jobs.logs.silence import last_line_times, silent_ranks_of
from jobs.logs.write import locked_head
from jobs.models import Attempt, Job, StackDump
from jobs.models.stack_dump import ANSWER_WITHIN
from jobs.permissions import Actor, require_stacks
from jobs.statuses import Carrier, StackState

# Of one attempt: the oldest answer is replaced, and at most so many may be pending.
MOST_KEPT = 64
NO_ANSWER = (
    f"Nothing came within {ANSWER_WITHIN.seconds // 60} minutes. The node may be cut off, or its "
    "runner may come from an older version of the portal, which cannot do this."
)


def ask_stacks(actor: Actor, job: Job, rank: int, pid: int | None = None) -> StackDump:
    """Have the runner of `rank` dump the stacks of its Python processes, or of the one with `pid`.

    ConflictError: no node can be asked now, or this one is being asked already. NotFoundError: the
    job has no such rank, or was deleted.
    """
    require_stacks(actor, job)
    if rank >= job.num_hosts:
        raise NotFoundError(f"Job {job.pk} has no node {rank}: it has {job.num_hosts}, from 0.")
    with transaction.atomic():
        attempt = _locked_attempt(job)
        waiting = attempt.stack_dumps.open()
        if waiting.filter(rank=rank).exists():
            raise ConflictError(f"Node {rank} is being asked already; wait for the answer.")
        if waiting.count() >= MOST_KEPT:
            raise ConflictError(f"{MOST_KEPT} nodes are being asked already; wait for an answer.")
        dump = StackDump.objects.create(attempt=attempt, rank=rank, pid=pid, asked_by=actor.user)
        _drop_oldest(attempt, added=1)
        what = f"node {rank}" if pid is None else f"process {pid} of node {rank}"
        _note(actor, job, attempt, what, {"rank": rank, "pid": pid})
    return dump


def ask_all_stacks(actor: Actor, job: Job) -> list[StackDump]:
    """Have the runners of all ranks dump the stacks of their Python processes, at the same time.

    Of more than 64 ranks the silent ones are asked, then the first ones. ConflictError: no node
    can be asked now, or some are being asked already.
    """
    require_stacks(actor, job)
    with transaction.atomic():
        attempt = _locked_attempt(job)
        if attempt.stack_dumps.open().exists():
            raise ConflictError("Some nodes are being asked already; wait for their answers.")
        silent = silent_ranks_of(attempt, attempt.workers.all(), last_line_times(attempt))
        ranks = sorted(range(job.num_hosts), key=lambda rank: (rank not in silent, rank))
        now = clock.now()
        dumps = StackDump.objects.bulk_create(
            StackDump(attempt=attempt, rank=rank, asked_by=actor.user, asked_at=now)
            for rank in sorted(ranks[:MOST_KEPT])
        )
        _drop_oldest(attempt, added=len(dumps))
        what = "all nodes" if len(dumps) == len(ranks) else f"{len(dumps)} of {len(ranks)} nodes"
        _note(actor, job, attempt, what, {"ranks": [dump.rank for dump in dumps]})
    return dumps


def _locked_attempt(job: Job) -> Attempt:
    """Return the attempt to ask, locked, without requests that are overdue."""
    # Every change of an attempt and its log locks the log first; and it may end meanwhile.
    locked_head(_attempt_to_ask(job).pk)
    keep(job)
    attempt, now = _attempt_to_ask(job), clock.now()
    attempt.stack_dumps.open().filter(asked_at__lt=now - ANSWER_WITHIN).update(
        state=StackState.FAILED, ended_at=now, why=NO_ANSWER
    )
    return attempt


def _note(actor: Actor, job: Job, attempt: Attempt, what: str, request: dict[str, Any]) -> None:
    record(actor, "stacks", job, after={"attempt": attempt.number, **request})
    note_action(job, actor, "stacks", f"Stack dump of {what}, attempt {attempt.number}.")


def _attempt_to_ask(job: Job) -> Attempt:
    attempt = job.attempts.open().order_by("-number").first()
    if attempt is None or attempt.contacted_at is None:
        raise ConflictError(
            f"No node of job {job.pk} can be asked now: only while it runs, once its first node "
            "has reported."
        )
    if attempt.carrier == Carrier.PULL:
        raise ConflictError(
            f"The nodes of job {job.pk} do not reach this portal, so they cannot be asked from "
            "here. Reach the node by ssh (the tab Nodes says how) and run `py-spy dump --pid` "
            "with the id of its process."
        )
    return attempt


def _drop_oldest(attempt: Attempt, added: int) -> None:
    answered = attempt.stack_dumps.exclude(state=StackState.REQUESTED)
    kept = answered.order_by("-pk").values_list("pk", flat=True)[: MOST_KEPT - added]
    answered.exclude(pk__in=list(kept)).delete()
