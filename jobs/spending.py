"""The cost of projects and jobs so far: the bills, and the estimate of the time since them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

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
    return spent_between(month.begin, month.end, now, project_ids)


def spent_between(
    begin: datetime, end: datetime, now: datetime, project_ids: Iterable[int] | None = None
) -> dict[int, Decimal]:
    """Return US$ by project id from `begin` up to `end`; without `project_ids` of all projects."""
    clusters = there_between(begin, min(now, end)).exclude(_COSTS_NOTHING)
    if project_ids is not None:
        clusters = clusters.filter(project__in=project_ids)
    # The many that came and went within this time are added up in the database.
    whole = Q(created_at__gte=begin, gone_at__lt=end) & _IS_SETTLED
    added = clusters.filter(whole).values_list("project").annotate(Sum("usd"))
    found = {project_id: usd or NOTHING for project_id, usd in added}
    for cluster in clusters.exclude(whole).only(*OF_COST):
        charge = charge_of(cluster)
        part = within(
            so_far(charge, now),
            began=charge.began,
            until=charge.until(now),
            begin=begin,
            end=end,
        )
        found[cluster.project_id] = found.get(cluster.project_id, NOTHING) + part
    return found


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
