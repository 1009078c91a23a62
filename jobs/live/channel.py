"""Live hints over Redis: "something about this job changed". A hint carries ids, never state."""

from __future__ import annotations

import json
import logging

import redis
from django.conf import settings
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

from jobs.models import Job

log = logging.getLogger(__name__)


def project_topic(project_id: int) -> str:
    """The topic of everything a project's job table shows."""
    return f"mportal:project:{project_id}"


def job_topic(job_id: int) -> str:
    """The topic of one job: status, stages, workers, events."""
    return f"mportal:job:{job_id}"


def log_topic(attempt_id: int) -> str:
    """The topic of new log lines of one attempt."""
    return f"mportal:log:{attempt_id}"


_client: redis.Redis | None = None


def connection() -> redis.Redis:
    """This process's pool of connections; a call lasts at most a second."""
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


def publish_on_commit(job: Job) -> None:
    """After commit, tell whoever watches `job`, or its project's table, to look again."""
    transaction.on_commit(
        lambda: _publish({job_topic(job.pk), project_topic(job.project_id)}, {"job": job.pk}),
        robust=True,
    )


def publish_clusters_on_commit(project_id: int) -> None:
    """After commit, tell whoever watches the project's jobs or clusters to look again."""
    transaction.on_commit(
        lambda: _publish({project_topic(project_id)}, {"project": project_id}), robust=True
    )


def publish_log_on_commit(attempt_id: int, next_line: int) -> None:
    """After commit, tell whoever follows this attempt's log that lines below `next_line` exist."""
    transaction.on_commit(
        lambda: _publish({log_topic(attempt_id)}, {"next_line": next_line}), robust=True
    )


def _publish(topics: set[str], body: dict[str, int]) -> None:
    # A lost hint costs a watcher a second (it polls slowly too); it must never fail a commit.
    try:
        pipe = connection().pipeline(transaction=False)
        for topic in topics:
            pipe.publish(topic, json.dumps(body))
        pipe.execute()
    except redis.RedisError:
        log.warning("live hint not sent", extra={"action": "live_hint_lost"}, exc_info=True)
