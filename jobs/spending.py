"""The cost of projects and jobs so far: the bills, and the estimate of the time since them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import F, Q, QuerySet, Sum

from jobs.models import Attempt, Budget, Cluster, Job
from jobs.policies.budgets import Month, Stand, stand_of, why_held
from jobs.policies.costs import NOTHING, Charge, Use, shares, so_far, within
from jobs.statuses import ClusterStatus, OnSpent

# The columns of a cluster's cost.
OF_COST = (
    "project_id",
    "created_at",
    "usd",
    "usd_per_hour",
    "billed_at",
    "stopped_at",
    "gone_at",
)
# The last bill has arrived, and it will not change.
_IS_SETTLED = Q(status=ClusterStatus.GONE, billed_at__gte=F("gone_at"))
# Machines without a price, such as the portal's own.
_COSTS_NOTHING = Q(usd=None, usd_per_hour=None)


def charge_of(cluster: Cluster) -> Charge:
    """Return what is known of the cluster's cost."""
    return Charge(
        began=cluster.created_at,
        usd=cluster.usd,
        usd_per_hour=cluster.usd_per_hour,
        billed_at=cluster.billed_at,
        ended=cluster.stopped_at or cluster.gone_at,
    )


def uses_of(attempts: Iterable[Attempt]) -> list[Use]:
    """List the attempts' times on a cluster."""
    return [Use(attempt.pk, attempt.created_at, attempt.ended_at) for attempt in attempts]


def is_waiting_kind(cluster: Cluster) -> bool:
    """Whether idle time of `cluster` is its project's: also if it takes no more jobs."""
    return cluster.is_reusable or bool(cluster.fingerprint)


def there_between(begin: datetime, end: datetime) -> QuerySet[Cluster]:
    """Return the clusters that existed at some time from `begin` up to `end`."""
    lived = Q(gone_at=None) | Q(gone_at__gte=begin)
    return Cluster.objects.filter(lived, created_at__lt=end)


def spent_in(
    month: Month, now: datetime, project_ids: Iterable[int] | None = None
) -> dict[int, Decimal]:
    """Return US$ by project id, idle time of warm clusters included.

    Without `project_ids` all projects are counted.
    """
    return spent_within([(month.begin, month.end)], now, project_ids)[0]


def spent_within(
    spans: Sequence[tuple[datetime, datetime]],
    now: datetime,
    project_ids: Iterable[int] | None = None,
) -> list[dict[int, Decimal]]:
    """Return US$ by project id for each span of time, each up to its end, in two queries."""
    first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
    clusters = there_between(first, min(now, last)).exclude(_COSTS_NOTHING)
    if project_ids is not None:
        clusters = clusters.filter(project__in=project_ids)
    # The many that came and went within a span are added up in the database.
    sums = {
        f"span_{number}": Sum("usd", filter=Q(created_at__gte=begin, gone_at__lt=end) & _IS_SETTLED)
        for number, (begin, end) in enumerate(spans)
    }
    rows: list[Any] = list(clusters.values("project").annotate(**sums).order_by())
    found = [{row["project"]: row[name] for row in rows if row[name] is not None} for name in sums]
    edges = {edge for span in spans for edge in span}
    crosses = [Q(created_at__lt=edge) & (Q(gone_at=None) | Q(gone_at__gte=edge)) for edge in edges]
    others = clusters.filter(reduce(or_, crosses, ~_IS_SETTLED)).only(*OF_COST, "status")
    for cluster in others:
        charge = charge_of(cluster)
        usd, until = so_far(charge, now), charge.until(now)
        for (begin, end), of_span in zip(spans, found, strict=True):
            if not _is_added(cluster, begin, end):
                part = within(usd, began=charge.began, until=until, begin=begin, end=end)
                of_span[cluster.project_id] = of_span.get(cluster.project_id, NOTHING) + part
    return found


def _is_added(cluster: Cluster, begin: datetime, end: datetime) -> bool:
    """Whether the database has added a cluster up for this span: see `_IS_SETTLED`."""
    if cluster.gone_at is None or cluster.billed_at is None:
        return False
    is_settled = cluster.status == ClusterStatus.GONE and cluster.billed_at >= cluster.gone_at
    return is_settled and cluster.created_at >= begin and cluster.gone_at < end


def budget_blocks(now: datetime) -> dict[int, str]:
    """Return the message by project id, for projects whose budget lets no job start now."""
    holding = Budget.objects.exclude(on_spent=OnSpent.WARN).select_related("project")
    rows = {row.project_id: row for row in holding}
    if not rows:
        return {}
    month = Month.of(now)
    spent = spent_in(month, now, rows)
    return {
        project_id: why_held(row.project.slug, row.terms, spent.get(project_id, NOTHING), month)
        for project_id, row in rows.items()
        if row.terms.holds(spent.get(project_id, NOTHING))
    }


def cost_of_job(job: Job, now: datetime) -> Decimal:
    """Return the cost of all the job's attempts, in US$."""
    attempts = job.attempts.select_related("cluster")
    return sum((_cost_of(attempt, now) for attempt in attempts), NOTHING)


def budget_of_job(job: Job) -> Decimal | None:
    """Return the job's own budget in US$; None without one."""
    usd = job.request.budget_usd
    return None if usd is None else Decimal(str(usd))


def has_spent_its_budget(job: Job, now: datetime) -> bool:
    """Whether nothing is left of the job's own budget."""
    budget = budget_of_job(job)
    return budget is not None and stand_of(cost_of_job(job, now), budget) is Stand.SPENT


def _cost_of(attempt: Attempt, now: datetime) -> Decimal:
    cluster, usd = attempt.cluster, attempt.usd or NOTHING
    if cluster is None:
        return usd
    charge = charge_of(cluster)
    total = so_far(charge, now)
    if not total or total == cluster.usd:
        return usd
    divided = shares(
        total,
        uses_of(cluster.attempts.all()),
        began=charge.began,
        until=charge.until(now),
        waits=is_waiting_kind(cluster),
    )
    return divided.of_attempts.get(attempt.pk, usd)
