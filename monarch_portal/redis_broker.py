"""Celery's Redis transport, to which a Redis that is away or full comes back.

Kombu takes the refusal of a full one for a mistake of the program's: every worker would end at its
next acknowledgement. And it counts a task that could not be acknowledged as one in hand, for ever:
a worker with all threads busy when Redis goes would never take another task.
"""

from __future__ import annotations

from kombu.transport import TRANSPORT_ALIASES, virtual
from kombu.transport import redis as kombu_redis
from redis.exceptions import OutOfMemoryError


class QoS(kombu_redis.QoS):
    """What a worker has in hand: nothing that has ended, whether or not Redis heard of it."""

    def ack(self, delivery_tag: str) -> None:
        """Acknowledge a message. Errors of the connection pass through."""
        try:
            super().ack(delivery_tag)
        finally:
            virtual.QoS.ack(self, delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001, FBT002
        """Give a message back or away. Errors of the connection pass through."""
        try:
            super().reject(delivery_tag, requeue=requeue)
        finally:
            virtual.QoS.ack(self, delivery_tag)


class Channel(kombu_redis.Channel):
    """Counts what is in hand as above."""

    QoS = QoS


class Transport(kombu_redis.Transport):
    """What the names `redis` and `rediss` stand for, once `register` was called."""

    Channel = Channel
    connection_errors = (*kombu_redis.Transport.connection_errors, OutOfMemoryError)


def register() -> None:
    """Let kombu find it."""
    for name in ("redis", "rediss"):
        TRANSPORT_ALIASES[name] = f"{__name__}:Transport"
