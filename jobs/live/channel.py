"""Live hints over Redis: "something about this job changed". A hint carries ids, never state."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping

import redis
from django.db import transaction

from jobs.ground.redis_client import connection
from jobs.models import Job

log = logging.getLogger(__name__)


# The topic of everything that the page of the queue shows, of all projects.
QUEUE_TOPIC = "mportal:queue"


def project_topic(project_id: int) -> str:
    """Return the topic of everything a project's job table shows."""
    return f"mportal:project:{project_id}"


def rights_topic(user_id: int) -> str:
    """Return the topic of what a user may see: role, membership, account and sessions."""
    return f"mportal:rights:{user_id}"


def job_topic(job_id: int) -> str:
    """Return the topic of one job: status, stages, workers, events."""
    return f"mportal:job:{job_id}"


def log_topic(attempt_id: int) -> str:
    """Return the topic of new log lines of one attempt."""
    return f"mportal:log:{attempt_id}"


def publish_on_commit(job: Job) -> None:
    """Publish after commit that `job`, its project's table and the queue have to be read again."""
    topics = {job_topic(job.pk), project_topic(job.project_id), QUEUE_TOPIC}
    transaction.on_commit(lambda: _publish(topics, {"job": job.pk}), robust=True)


def publish_use_on_commit(job: Job) -> None:
    """Publish after commit that the GPU use of `job` changed, which the queue does not show."""
    topics = {job_topic(job.pk), project_topic(job.project_id)}
    transaction.on_commit(lambda: _publish(topics, {"job": job.pk}), robust=True)


def publish_queue_on_commit() -> None:
    """Publish after commit that the queue has to be read again."""
    transaction.on_commit(lambda: _publish({QUEUE_TOPIC}, {}), robust=True)


def publish_many_on_commit(jobs: Collection[tuple[int, int]]) -> None:
    """Publish hints at many jobs after commit, each with its project's number, in one message."""
    topics = {job_topic(job_id): {"job": job_id} for job_id, _ in jobs}
    projects = {project_id for _, project_id in jobs}
    topics |= {project_topic(project_id): {"project": project_id} for project_id in projects}
    transaction.on_commit(lambda: _publish_all(topics), robust=True)


def publish_rights_on_commit(user_id: int) -> None:
    """Publish after commit that the user may have lost the right to what their pages show."""
    transaction.on_commit(lambda: _publish({rights_topic(user_id)}, {"user": user_id}), robust=True)


def publish_clusters_on_commit(project_id: int) -> None:
    """Publish after commit that the project's jobs and clusters have to be read again."""
    transaction.on_commit(
        lambda: _publish({project_topic(project_id)}, {"project": project_id}), robust=True
    )


def publish_log_on_commit(attempt_id: int, next_line: int) -> None:
    """Publish after commit that this attempt's log has lines below `next_line`."""
    transaction.on_commit(
        lambda: _publish({log_topic(attempt_id)}, {"next_line": next_line}), robust=True
    )


def _publish(topics: set[str], body: dict[str, int]) -> None:
    _publish_all(dict.fromkeys(topics, body))


def _publish_all(hints: Mapping[str, dict[str, int]]) -> None:
    # A lost hint costs a watcher a second (it polls slowly too); it must never fail a commit.
    try:
        pipe = connection().pipeline(transaction=False)
        for topic, body in hints.items():
            pipe.publish(topic, json.dumps(body))
        pipe.execute()
    except redis.RedisError:
        log.warning("live hint not sent", extra={"action": "live_hint_lost"}, exc_info=True)
