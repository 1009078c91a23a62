"""Clusters that are on, as the queue counts them: each by what it was made for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from jobs.models import Attempt, Cluster
from jobs.queueing.limits import RequestedResources

# The first columns of `UpCluster`; then those that make a `RequestedResources`. `group_name` is not
# among them: a concurrency group limits jobs, and no machines.
_COLUMNS = (
    "pk",
    "name",
    "status",
    "is_reusable",
    "fingerprint",
    "release_requested_at",
    "idle_since",
)
_REQUEST_COLUMNS = (
    "project_id",
    "started_by_id",
    "queue_name",
    "backend_name",
    "num_nodes",
    "gpu_type",
    "gpu_count",
)


_NO_POLICY: Mapping[str, Any] = {}


class UpCluster(NamedTuple):
    """A cluster that is on. A tuple: there may be thousands."""

    pk: int
    name: str
    status: str
    is_reusable: bool
    fingerprint: str
    release_requested_at: datetime | None
    idle_since: datetime | None
    idle_policy: Mapping[str, Any]  # empty where it is not kept
    requested: RequestedResources


class LastJob(NamedTuple):
    """The job that came last onto a cluster, since when, and for which one it was stopped."""

    job_id: int
    began_s: float
    preempted_by: int | None


def machines_of(clusters: QuerySet[Cluster], *, with_prices: bool) -> Iterator[UpCluster]:
    """Yield all of `clusters`, also those whose jobs were deleted."""
    # Of these alone: to take thousands of empty ones apart is a tenth of a pass.
    kept = clusters.filter(Q(is_reusable=True) | Q(idle_since__isnull=False))
    policies = dict(kept.values_list("pk", "idle_policy"))
    rows = clusters.order_by("pk").values_list(*_COLUMNS, *_REQUEST_COLUMNS, "price_key")
    for row in rows.iterator(chunk_size=20_000):
        cluster, price_key = row[: len(_COLUMNS)], row[-1] if with_prices else ""
        requested = RequestedResources._make((*row[len(_COLUMNS) : -1], "", price_key))
        yield UpCluster._make((*cluster, policies.get(cluster[0], _NO_POLICY), requested))


def last_on(clusters: Collection[int]) -> dict[int, LastJob]:
    """Return the last job of each cluster, unless it was deleted."""
    attempts = Attempt.objects.filter(cluster__in=clusters).order_by("cluster", "-pk")
    columns = ("cluster_id", "job_id", "created_at", "job__preempted_by_id")
    rows = attempts.distinct("cluster").values_list(*columns) if clusters else ()
    return {pk: LastJob(job_id, at.timestamp(), by) for pk, job_id, at, by in rows}
