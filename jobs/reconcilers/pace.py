"""How soon the next pass over the queue may follow the last one, kept in Redis for all workers."""

from __future__ import annotations

import logging

import redis

from jobs.live.channel import connection

log = logging.getLogger(__name__)

SHORTEST_REST_S = 0.05
LONGEST_REST_S = 1.0
# A pass takes at most a tenth of the time, until that would mean resting longer than a second.
_REST_PER_PASS = 9

_RESTING = "mportal:queue:resting"
_ASKED = "mportal:queue:asked"


def rest_s(pass_s: float) -> float:
    """How long to rest after a pass that took `pass_s` seconds."""
    return min(LONGEST_REST_S, max(SHORTEST_REST_S, _REST_PER_PASS * pass_s))


def rest_after(pass_s: float) -> None:
    """Begin the rest. Without Redis there is none: every hint plans."""
    try:
        connection().set(_RESTING, 1, px=int(rest_s(pass_s) * 1000))
    except redis.RedisError:
        log.warning("no pace without Redis", extra={"action": "pace_lost"})


def resting_s() -> float:
    """Seconds until a pass may be made; 0.0 when it may be made now."""
    try:
        return max(0, connection().pttl(_RESTING)) / 1000
    except redis.RedisError:
        return 0.0


def first_to_ask(wait_s: float) -> bool:
    """Whether nobody else has asked to be woken at the end of this rest."""
    try:
        return bool(connection().set(_ASKED, 1, nx=True, px=max(1, int(wait_s * 1000))))
    except redis.RedisError:
        return True
