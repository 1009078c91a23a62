"""How soon a look may follow the last one, kept in Redis for all workers."""

from __future__ import annotations

import logging

import redis

from jobs.ground.redis_client import connection
from jobs.wakeups import Reconciler, first_to_ask, wake

log = logging.getLogger(__name__)

SHORTEST_REST_S = 0.05
LONGEST_REST_S = 1.0
# Passes take at most a fifth of a processor, until that would mean resting longer than a second.
_REST_PER_PASS = 4

# How soon a pass that somebody else makes is looked at again.
LOOK_AGAIN_S = 0.2

_RESTING = "mportal:queue:resting"


def rest_s(pass_s: float) -> float:
    """How long to rest after a pass that took `pass_s` seconds of a processor."""
    return min(LONGEST_REST_S, max(SHORTEST_REST_S, _REST_PER_PASS * pass_s))


def rest_after(pass_s: float) -> None:
    """Begin the rest after a pass of `pass_s`. Without Redis there is none: every hint plans."""
    try:
        connection().set(_RESTING, 1, px=int(rest_s(pass_s) * 1000))
    except redis.RedisError:
        log.warning("no pace without Redis", extra={"action": "pace_lost"})


def come_back_to_queue(wait_s: float, why: str) -> None:
    """Have the queue planned at the end of a wait; however many ask for the same, it is one pass.

    `why` they wait keeps them apart: who has asked for the end of a pass has not asked for that of
    the rest after it.
    """
    if first_to_ask(wait_s, f"queue:{why}"):
        wake("queue", delay_s=wait_s)


def resting_s() -> float:
    """Seconds until a pass may be made; 0.0 when it may be made now."""
    try:
        return max(0, connection().pttl(_RESTING)) / 1000
    except redis.RedisError:
        return 0.0


def come_back(reconciler: Reconciler, row_id: int, *, delay_s: float) -> None:
    """Have a row that somebody else is at looked at again; however many ask, it is one look."""
    if first_to_ask(delay_s, f"{reconciler}:{row_id}"):
        wake(reconciler, row_id, delay_s=delay_s)
