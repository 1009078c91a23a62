"""Connections of this process to Redis, for everything but Celery's messages."""

from __future__ import annotations

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

_client: redis.Redis | None = None


def connection() -> redis.Redis:
    """Return this process's pool of connections; a call lasts at most a second."""
    global _client  # noqa: PLW0603 - one lazily made pool a process; made after any fork
    if _client is None:
        _client = redis.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=1,
            socket_connect_timeout=1,
            # The library's own retries wait for seconds, and a request would wait with them.
            retry=Retry(NoBackoff(), 1),
        )
    return _client
