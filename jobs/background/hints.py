"""Hints to the background: "look at this now". The only sender of Celery tasks.

A lost hint costs seconds, because a beat tick finds the same work in the rows.
"""

from __future__ import annotations

import asyncio
import logging
import os
from functools import cache
from threading import Thread
from typing import Literal

import redis
from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from jobs.ground.redis_client import connection

log = logging.getLogger(__name__)

# Hints of the queue are sent once until a pass begins. This bounds the wait for a pass whose
# worker died.
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
    "log_policies",
    "gateway",
    "schedules",
    "sealing",
    "billing",
    "budgets",
    "prices",
    "job_budgets",
    "infra",
    "orphans",
    "retention",
]


def wake_on_commit(reconciler: Reconciler, row_id: int | None = None) -> None:
    """Send the hint after commit: run one step of `reconciler`, for `row_id` if given."""
    transaction.on_commit(lambda: wake(reconciler, row_id), robust=True)


def wake(reconciler: Reconciler, row_id: int | None = None) -> None:
    """Send the hint now. Never raises when the broker is away."""
    if reconciler != "queue" or _is_first("queue", _QUEUE_ASKED_S):
        _send(reconciler, row_id)


def wake_later(
    reconciler: Reconciler, row_id: int | None = None, *, delay_s: float, why: str = ""
) -> None:
    """Send the hint after `delay_s` seconds, once for all callers with the same row and `why`.

    This process waits, by its monotonic clock: another host may disagree on the time of day. A
    process that dies forgets the hint.
    """
    if _is_first(f"{reconciler}:{row_id}:{why}", delay_s):
        _send_later(delay_s, reconciler, row_id)


def begin_queue_pass() -> None:
    """Let hints of the queue be sent again. Call it before the pass reads anything."""
    try:
        connection().delete(_key("queue"))
    except redis.RedisError:
        log.warning("hints may cause a second pass", extra={"action": "wakeup_lost"})


def _is_first(what: str, duration_s: float) -> bool:
    """Whether no process has claimed `what` within `duration_s`; without Redis, always."""
    try:
        return bool(connection().set(_key(what), 1, nx=True, px=max(1, int(duration_s * 1000))))
    except redis.RedisError:
        return True


def _key(what: str) -> str:
    return f"mportal:{what}:asked"


def _send_later(delay_s: float, reconciler: Reconciler, row_id: int | None) -> None:
    timers = _timers(os.getpid())
    timers.call_soon_threadsafe(timers.call_later, delay_s, _send, reconciler, row_id)


@cache
def _timers(_pid: int) -> asyncio.AbstractEventLoop:
    """Return the loop that waits for delayed hints. A fork needs its own: threads stay behind."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="delayed-hints", daemon=True).start()
    return loop


def _send(reconciler: Reconciler, row_id: int | None) -> None:
    args = [] if row_id is None else [row_id]
    try:
        current_app.send_task(f"jobs.{reconciler}", args=args, retry=False)
    except (OperationalError, OSError, redis.RedisError):
        # RedisError: a Redis that is full refuses the message, which kombu does not translate.
        log.warning("hint not sent", extra={"action": "wakeup_lost"}, exc_info=True)
