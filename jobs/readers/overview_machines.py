"""Machines on the overview: GPUs by type, and machines that cost something and compute nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db.models import F, FloatField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast

from jobs.ground import clock
from jobs.limits import idle_limit
from jobs.models import Attempt, Cluster, GpuUse, Project
from jobs.policies.costs import NOTHING
from jobs.policies.gpu_use import IDLE_AFTER
from jobs.policies.idle import IdlePolicy, Kept, idle_end
from jobs.policies.series import late_after
from jobs.readers.infra import infra
from jobs.scheduling.limits import gpus_of
from jobs.statuses import ACTIVE_STATUSES, ClusterStatus
from monarch_client.wire import overview as wire
from monarch_client.wire.queue import Place

MOST_IDLE = 5
# More idle machines than these are not read.
_MOST_READ = 200
_MEAN = 2  # in a point of `jobs.policies.gpu_use`


@dataclass(slots=True)
class _OfType:
    held: int = 0
    idle: int = 0
    use: float | None = None
    pools: list[wire.PoolGpus] = field(default_factory=list)
    fleet: list[wire.PoolGpus] = field(default_factory=list)


def gpus_by_type(projects: Sequence[Project], places: Iterable[Place]) -> list[wire.GpusOfType]:
    """Return the GPUs of each type that these projects hold, or that anything here has."""
    found: dict[str, _OfType] = defaultdict(_OfType)
    held = Cluster.objects.existing().filter(project__in=projects, gpu_count__gt=0)
    rows = held.exclude(status=ClusterStatus.STOPPED).values("gpu_type")
    waits = Q(idle_since__isnull=False, release_requested_at=None)
    sums = rows.annotate(held=Sum("gpu_count"), idle=Sum("gpu_count", filter=waits, default=0))
    for row in sums.order_by():
        found[row["gpu_type"]].held = row["held"]
        found[row["gpu_type"]].idle = row["idle"]
    for gpu, use in _use_now(projects).items():
        found[gpu].use = use
    for place in places:
        for amount in place.amounts:
            gpu = amount.what.partition(":")[2]
            if place.kind == "pool" and amount.what == gpus_of(gpu) and amount.cap is not None:
                found[gpu].pools.append(_row(place.name, amount.used or 0, amount.cap))
    for backend in infra():
        for state in backend.gpus:
            there = _row(state.infra, state.total - state.free, state.total)
            found[state.gpu.upper()].fleet.append(there)
    return [
        wire.GpusOfType(
            gpu=gpu, held=row.held, idle=row.idle, use=row.use, pools=row.pools, fleet=row.fleet
        )
        for gpu, row in sorted(found.items(), key=lambda each: (-each[1].held, each[0]))
    ]


def idle_machines(projects: Sequence[Project]) -> list[wire.IdleMachines]:
    """Return idle warm clusters and running jobs with idle GPUs, the highest price first."""
    rows = [*_warm_clusters(projects), *_idle_jobs(projects)]
    return sorted(
        rows, key=lambda row: (-(row.usd_per_hour or NOTHING), -row.gpu_count, row.cluster)
    )


def ending_nodes(projects: Sequence[Project]) -> int:
    """Return the number of nodes that are being terminated."""
    ending = Cluster.objects.to_tear_down().filter(project__in=projects)
    return int(ending.aggregate(n=Sum("num_nodes", default=0))["n"])


def price_of(rows: Iterable[wire.IdleMachines]) -> Decimal:
    """Return the price of an hour of these machines."""
    return sum((row.usd_per_hour or NOTHING for row in rows), NOTHING)


def prices_now(projects: Sequence[Project]) -> Mapping[int, Decimal]:
    """Return the price of an hour of all machines that are on, by project id."""
    on = Cluster.objects.existing().filter(project__in=projects)
    rows = on.exclude(status=ClusterStatus.STOPPED).values_list("project")
    return {pk: usd or NOTHING for pk, usd in rows.annotate(Sum("usd_per_hour")).order_by()}


def _use_now(projects: Sequence[Project]) -> dict[str, float]:
    """Return the GPU use now by type: the mean of running jobs, weighted by their GPUs."""
    last = KeyTextTransform(_MEAN, KeyTransform(-1, "points"))
    rows = (
        _reporting(projects)
        .filter(job__gpu_count__gt=0)
        .annotate(mean=Cast(last, FloatField()), weight=F("job__gpu_count"))
        .filter(mean__isnull=False)
        .values("job__gpu_type")
        .annotate(
            total=Sum(F("mean") * F("weight"), output_field=FloatField()), weights=Sum("weight")
        )
        .order_by()
    )
    return {row["job__gpu_type"]: row["total"] / row["weights"] for row in rows}


def _reporting(projects: Sequence[Project]) -> QuerySet[GpuUse]:
    """Return the GPU use of running attempts that report."""
    late = late_after(settings.MPORTAL_METRICS_SECONDS)
    return GpuUse.objects.filter(
        job__project__in=projects,
        job__status__in=ACTIVE_STATUSES,
        attempt__ended_at=None,
        at__gte=clock.now() - late,
    )


def _warm_clusters(projects: Sequence[Project]) -> Iterable[wire.IdleMachines]:
    last = Attempt.objects.filter(cluster=OuterRef("pk")).order_by("-pk")
    rows = (
        Cluster.objects.waiting()
        .filter(project__in=projects, status=ClusterStatus.UP)
        .select_related("project")
        .annotate(
            last_job=Subquery(last.values("job_id")[:1]),
            last_name=Subquery(last.values("job__name")[:1]),
        )
        .order_by(F("usd_per_hour").desc(nulls_last=True))[:_MOST_READ]
    )
    for row in rows:
        assert row.idle_since is not None  # noqa: S101 - a condition of the query
        yield wire.IdleMachines(
            project=row.project.slug,
            cluster=row.name,
            job=getattr(row, "last_job", None),
            job_name=getattr(row, "last_name", None) or "",
            is_busy=False,
            num_nodes=row.num_nodes,
            gpu_type=row.gpu_type,
            gpu_count=row.gpu_count,
            usd_per_hour=row.usd_per_hour,
            idle_since=row.idle_since,
            ends_at=_ends_at(row, row.idle_since),
        )


def _ends_at(cluster: Cluster, idle_since: datetime) -> datetime:
    kept = Kept(idle_since, IdlePolicy.from_dict(cluster.idle_policy))
    return idle_end(kept, idle_limit(cluster.project))


def _idle_jobs(projects: Sequence[Project]) -> Iterable[wire.IdleMachines]:
    rows = (
        _reporting(projects)
        .filter(busy_at__lte=clock.now() - IDLE_AFTER, busy_at__lt=F("at"))
        .select_related("job__project", "attempt__cluster")
        .defer("points", "job__spec", "job__spec_source")[:_MOST_READ]
    )
    for row in rows:
        cluster = row.attempt.cluster
        yield wire.IdleMachines(
            project=row.job.project.slug,
            cluster=cluster.name if cluster else "",
            job=row.job_id,
            job_name=row.job.name,
            is_busy=True,
            num_nodes=row.job.num_nodes,
            gpu_type=row.job.gpu_type,
            gpu_count=row.job.gpu_count,
            usd_per_hour=cluster.usd_per_hour if cluster else None,
            idle_since=row.busy_at,
            ends_at=None,
        )


def _row(name: str, used: float, total: float) -> wire.PoolGpus:
    return wire.PoolGpus(name=name, used=int(used), total=int(total))
