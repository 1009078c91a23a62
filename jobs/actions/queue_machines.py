"""Clusters that are on, as the queue counts them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Max, QuerySet, Sum

from jobs.actions.queue_places import Asked
from jobs.models import Attempt, Cluster

# The first columns of `Machines`, as an attempt knows them.
_COLUMNS = (
    "cluster_id",
    "cluster__name",
    "cluster__status",
    "cluster__num_nodes",
    "cluster__is_reusable",
    "cluster__release_requested_at",
    "cluster__idle_since",
    "cluster__idle_policy",
    "created_at",
    "job_id",
    "job__preempted_by_id",
)


class Machines(NamedTuple):
    """A cluster that is on, and what was put there last. A tuple: there may be thousands."""

    pk: int
    name: str
    status: str
    num_nodes: int
    is_reusable: bool
    release_requested_at: datetime | None
    idle_since: datetime | None
    idle_policy: dict[str, Any]
    began_at: datetime
    last_job_id: int
    preempted_by_id: int | None
    asked: Asked


def machines_of(clusters: QuerySet[Cluster], asked_of: Iterable[str]) -> Iterator[Machines]:
    """Those on which anything was put: what was put there last says which pool they are of.

    `asked_of` are the columns of a job that make an `Asked`.
    """
    last = clusters.annotate(last=Max("attempts__pk")).exclude(last=None).values("last")
    asked = [f"job__{name}" for name in asked_of]
    rows = Attempt.objects.filter(pk__in=last).order_by("pk").values_list(*_COLUMNS, *asked)
    for row in rows.iterator(chunk_size=20_000):
        cluster, job = row[: len(_COLUMNS)], Asked(*row[len(_COLUMNS) :])
        # Of a cluster that was kept, a job may use a part.
        whole = job._replace(num_nodes=cluster[_COLUMNS.index("cluster__num_nodes")])
        yield Machines._make((*cluster, whole))


def nodes_of(clusters: QuerySet[Cluster]) -> dict[str, int]:
    """How many nodes they have, by backend."""
    counted = clusters.values("backend_name").annotate(nodes=Sum("num_nodes"))
    return dict(counted.values_list("backend_name", "nodes"))
