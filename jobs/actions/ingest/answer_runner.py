"""The orders in the answer to a runner that pushes: to end, to dump stacks, to dial the gateway."""

from __future__ import annotations

from typing import NamedTuple

from django.db.models import Exists, OuterRef

from jobs.models import Attempt, GatewaySession, StackDump
from jobs.statuses import Carrier, JobStatus
from monarch_client.crash_points import reach
from monarch_client.runner.vocabulary.stack_requests import StackRequest

# How long users' programs may take to end, in seconds, whatever the reason.
GRACE_S = 10.0


class Orders(NamedTuple):
    """`stop_grace_s`: the grace with which the attempt is to end; None: it goes on.

    `gateway`: a program wants to attach, so that the head node connects to the gateway.
    """

    stop_grace_s: float | None
    stacks: list[StackRequest]
    gateway: bool = False


NO_ORDERS = Orders(None, [])


def answer_runner(attempt_id: int) -> Orders:
    """Note that this attempt pushes, and say what its runner is to do.

    The attempt exists, and its token has been checked.
    """
    attempts = Attempt.objects.filter(pk=attempt_id)
    # In one query with the rest: it runs for every batch of lines.
    open_dumps = StackDump.objects.open().filter(attempt=OuterRef("pk"))
    sessions = GatewaySession.objects.current().filter(attempt=OuterRef("pk"))
    row = attempts.annotate(
        has_requests=Exists(open_dumps), is_wanted=Exists(sessions)
    ).values_list("carrier", "ended_at", "job__status", "has_requests", "is_wanted")
    carrier, ended_at, status, has_requests, is_wanted = row.get()
    if carrier != Carrier.PUSH:
        attempts.update(carrier=Carrier.PUSH)
    asks = _stack_requests(attempt_id) if has_requests and ended_at is None else []
    if status != JobStatus.STOPPING or ended_at is not None:
        return Orders(None, asks, is_wanted and ended_at is None)
    reach("stop.answering")
    return Orders(GRACE_S, asks)


def _stack_requests(attempt_id: int) -> list[StackRequest]:
    dumps = StackDump.objects.open().filter(attempt=attempt_id).order_by("pk")
    return [StackRequest(dump.pk, dump.rank, dump.pid) for dump in dumps if not dump.is_overdue]
