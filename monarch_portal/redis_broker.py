"""Celery's Redis transport, to which a Redis that is full comes back, and which is light.

Kombu takes the refusal of a full one for a mistake of the program's, and not for what it tells who
sends as a broker that is away. And it makes a client anew, with a table of hundreds of commands,
for each message.
"""

from __future__ import annotations

from collections.abc import Callable

import redis
from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as kombu_redis
from redis.exceptions import OutOfMemoryError


class Channel(kombu_redis.Channel):
    """Keeps its client for as long as the connections that it speaks over."""

    _kept: redis.Redis | None = None

    def _create_client(self, asynchronous: bool = False) -> redis.Redis:  # noqa: FBT001, FBT002
        make: Callable[..., redis.Redis] = super()._create_client  # type: ignore[misc]
        if asynchronous:
            return make(asynchronous=True)
        kept = self._kept
        if kept is None or kept.connection_pool is not self.pool:
            kept = self._kept = make()
        return kept


class Transport(kombu_redis.Transport):
    """What the names `redis` and `rediss` stand for, once `register` was called."""

    Channel = Channel
    connection_errors = (*kombu_redis.Transport.connection_errors, OutOfMemoryError)


def register() -> None:
    """Let kombu find it."""
    for name in ("redis", "rediss"):
        TRANSPORT_ALIASES[name] = f"{__name__}:Transport"
