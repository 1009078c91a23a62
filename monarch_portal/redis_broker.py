"""Celery's Redis transport, to which a full Redis is one that is away for now.

Kombu takes the refusal for a mistake of the program's: every worker would end at its next
acknowledgement.
"""

from __future__ import annotations

from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as kombu_redis
from redis.exceptions import OutOfMemoryError


class Transport(kombu_redis.Transport):
    """What the names `redis` and `rediss` stand for, once `register` was called."""

    connection_errors = (*kombu_redis.Transport.connection_errors, OutOfMemoryError)


def register() -> None:
    """Let kombu find it."""
    for name in ("redis", "rediss"):
        TRANSPORT_ALIASES[name] = f"{__name__}:Transport"
