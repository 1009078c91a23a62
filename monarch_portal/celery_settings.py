"""The settings of Celery: messages are hints, tasks are short and safe to repeat."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit


def broker_url(redis_url: str) -> str:
    """Return the broker's URL for a Redis URL: kombu spells Unix sockets in its own way."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    database = parse_qs(parts.query).get("db", ["0"])[0]
    password = f":{quote(unquote(parts.password), safe='')}@" if parts.password else ""
    return f"redis+socket://{password}{parts.path}?virtual_host={database}"


def celery_settings(redis_url: str, *, concurrency: int) -> dict[str, Any]:
    """Return the Django settings with the CELERY_ prefix."""
    return {
        "CELERY_BROKER_URL": broker_url(redis_url),
        # A send happens inside requests: without a broker it must fail at once, and beat's tick
        # finds the work anyway.
        "CELERY_BROKER_CONNECTION_TIMEOUT": 1,
        "CELERY_BROKER_TRANSPORT_OPTIONS": {
            # A hint is in Redis until a worker takes it, and is stored nowhere after that: if the
            # worker dies, a tick finds the work.
            "ack_emulation": False,
            "socket_connect_timeout": 1,
            "socket_timeout": 1,
            "max_retries": 0,
        },
        "CELERY_TASK_PUBLISH_RETRY": False,
        "CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP": True,
        "CELERY_BROKER_CONNECTION_MAX_RETRIES": None,
        "CELERY_TASK_SERIALIZER": "json",
        "CELERY_ACCEPT_CONTENT": ["json"],
        "CELERY_TASK_IGNORE_RESULT": True,
        # There are no results. Without this each thread that sends a hint looks for itself, for
        # several milliseconds, where they would go; and the thread of a request may be a new one.
        "CELERY_RESULT_BACKEND_THREAD_SAFE": True,
        "CELERY_TASK_ACKS_LATE": True,
        "CELERY_TASK_DEFAULT_QUEUE": "mportal",
        # Threads: steps wait for the database and for processes, and one process is small.
        "CELERY_WORKER_POOL": "threads",
        "CELERY_WORKER_CONCURRENCY": concurrency,
        "CELERY_WORKER_PREFETCH_MULTIPLIER": 1,
        "CELERY_WORKER_HIJACK_ROOT_LOGGER": False,
        "CELERY_WORKER_ENABLE_REMOTE_CONTROL": False,
        "CELERY_WORKER_SEND_TASK_EVENTS": False,
        "CELERY_TIMEZONE": "UTC",
        # Keeps its clock in memory: what was due while beat was away is found by the next tick.
        "CELERY_BEAT_SCHEDULER": "jobs.background.ticks:BoundedScheduler",
        "CELERY_BEAT_MAX_LOOP_INTERVAL": 5,
    }
