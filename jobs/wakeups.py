"""Hints to the background: "look at this now". The only sender of Celery tasks.

A lost hint costs seconds, because a beat tick finds the same work in the rows.
"""

from __future__ import annotations

import logging
from typing import Literal

import redis
from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from jobs.ground.later import Later
from jobs.ground.redis_client import connection

log = logging.getLogger(__name__)
_later = Later()

# Until a pass over the queue that is asked for has begun, hints say nothing new. For so long at
# most: who was to make it may have died.
_QUEUE_ASKED_S = 2.0

Reconciler = Literal[
    "queue",
    "dependencies",
    "children",
    "provisioning",
    "running",
    "recovering",
    "stopping",
    "teardown",
    "autostop",
    "sealing",
    "orphans",
    "budgets",
    "infra",
    "prices",
]


def wake_on_commit(reconciler: Reconciler, row_id: int | None = None) -> None:
    """After commit, ask a worker to run one step of `reconciler` (for `row_id`, if given)."""
    transaction.on_commit(lambda: wake(reconciler, row_id), robust=True)


def wake(reconciler: Reconciler, row_id: int | None = None, *, delay_s: float = 0.0) -> None:
    """Send the hint now, or after `delay_s` seconds. Never raises when the broker is away.

    The wait is this process's: a time of day in the message would be read by another one's clock.
    """
    if delay_s > 0:
        _later.call(delay_s, lambda: _send(reconciler, row_id))
    elif reconciler != "queue" or first_to_ask(_QUEUE_ASKED_S, "queue"):
        _send(reconciler, row_id)


def hear_of_queue() -> None:
    """What is hinted at from now on needs another pass. Call it before the pass reads anything."""
    try:
        connection().delete(_asked("queue"))
    except redis.RedisError:
        log.warning("passes are asked for twice", extra={"action": "wakeup_lost"})


def first_to_ask(wait_s: float, what: str) -> bool:
    """Whether nobody else has asked to be woken for `what` at the end of this wait."""
    try:
        milliseconds = max(1, int(wait_s * 1000))
        return bool(connection().set(_asked(what), 1, nx=True, px=milliseconds))
    except redis.RedisError:
        return True


def _asked(what: str) -> str:
    return f"mportal:{what}:asked"


def _send(reconciler: Reconciler, row_id: int | None) -> None:
    args = [] if row_id is None else [row_id]
    try:
        current_app.send_task(f"jobs.{reconciler}", args=args, retry=False)
    except (OperationalError, OSError):
        log.warning("wake-up not sent", extra={"action": "wakeup_lost"}, exc_info=True)
