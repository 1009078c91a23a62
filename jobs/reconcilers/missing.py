"""Mark clusters with a row that their backend has not shown for some time."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime

import redis

from jobs.actions.clusters.take_down import release_unneeded
from jobs.actions.jobs.history import record_note
from jobs.ground import clock
from jobs.ground.redis_client import connection
from jobs.live.channel import publish_clusters_on_commit
from jobs.models import Attempt, Cluster
from jobs.statuses import ClusterStatus

log = logging.getLogger(__name__)

NOT_SHOWN = "Its backend does not show it any more."
# Longer than any grace: the keys expire by themselves.
_REMEMBERED_S = 2 * 24 * 3600


def note(backend_name: str, shown: set[str], limit: datetime) -> None:
    """Compare the rows of `backend_name` with the names it has `shown`.

    A row that was missing before `limit` is marked. A job on it gets a note; without a
    job it is terminated, in case its machines still exist.
    """
    there = {ClusterStatus.UP, ClusterStatus.STOPPED}
    rows = Cluster.objects.filter(backend_name=backend_name, status__in=there)
    rows = rows.filter(release_requested_at=None, created_at__lt=limit)
    there_by_rows = list(rows.only("name", "project_id", "backend_status"))
    _forget([row for row in there_by_rows if row.name in shown])
    for row in there_by_rows:
        is_missed = row.name not in shown and _missed_since(row) < limit
        if is_missed and row.backend_status != NOT_SHOWN:
            _record_missing(row)


def _record_missing(row: Cluster) -> None:
    log.warning("a cluster is not shown", extra={"action": "unseen", "cluster": row.name})
    Cluster.objects.filter(pk=row.pk).update(backend_status=NOT_SHOWN)
    open_attempts = Attempt.objects.filter(cluster=row, ended_at=None).select_related("job")
    for attempt in open_attempts:
        record_note(attempt.job, f"{row.name}: {NOT_SHOWN}", attempt, verb="unseen")
    if not open_attempts:
        release_unneeded(row, "its backend does not show it any more.")
    publish_clusters_on_commit(row.project_id)


def _forget(rows: list[Cluster]) -> None:
    """Forget that these clusters were missing. There may be thousands."""
    shown_again = [row.pk for row in rows if row.backend_status == NOT_SHOWN]
    if shown_again:
        Cluster.objects.filter(pk__in=shown_again).update(backend_status="")
    with suppress(redis.RedisError):
        if rows:
            connection().delete(*map(_key, rows))


def _missed_since(row: Cluster) -> datetime:
    """Return when this cluster was first missing, as stored in Redis; without Redis, now."""
    now = clock.now()
    try:
        connection().set(_key(row), now.isoformat(), nx=True, ex=_REMEMBERED_S)
        said = connection().get(_key(row))
    except redis.RedisError:
        return now
    return datetime.fromisoformat(said.decode()) if isinstance(said, bytes) else now


def _key(row: Cluster) -> str:
    return f"mportal:unseen:{row.pk}"
