"""The pause between two scheduling passes. Redis keeps the rest for all workers."""

from __future__ import annotations

import logging

import redis

from jobs.ground.redis_client import connection

log = logging.getLogger(__name__)

SHORTEST_REST_S = 0.05
LONGEST_REST_S = 1.0
# Passes take at most a fifth of a processor, until that would mean resting longer than a second.
_REST_PER_PASS = 4

_RESTING = "mportal:queue:resting"


def rest_s(pass_s: float) -> float:
    """Return how long to rest after a pass that took `pass_s` seconds of a processor."""
    return min(LONGEST_REST_S, max(SHORTEST_REST_S, _REST_PER_PASS * pass_s))


def rest_after(pass_s: float) -> None:
    """Begin the rest after a pass of `pass_s`. Without Redis there is none: every hint plans."""
    try:
        connection().set(_RESTING, 1, px=int(rest_s(pass_s) * 1000))
    except redis.RedisError:
        log.warning("no pace without Redis", extra={"action": "pace_lost"})


def resting_s() -> float:
    """Return the seconds until a pass may begin; 0.0 if it may begin now."""
    try:
        return max(0, connection().pttl(_RESTING)) / 1000
    except redis.RedisError:
        return 0.0
