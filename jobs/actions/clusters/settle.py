"""Store the final cost of clusters, which pages add up instead of dividing each cluster.

The callers are the changes of a cluster after which its cost may be final, or open again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta, timezone
from decimal import Decimal

from django.db.models import Exists, F, OuterRef, Q

from jobs.models import Attempt, SettledUse
from jobs.policies.costs import NOTHING
from jobs.statuses import ClusterStatus
from monarch_client.spec.accelerators import known_count

# Sums of doubles are exact up to 2^53 millionths: a cluster that costs more is divided.
MOST_USD = Decimal(1_000_000)
_HOUR = timedelta(hours=1)


def settle(cluster_ids: Collection[int]) -> None:
    """Bring the stored costs of these clusters up to date; one that is not final has none.

    Call it in the transaction of the change. A job that another transaction has locked may be
    about to be deleted: its cluster stays without a row, and so is divided.
    """
    SettledUse.objects.filter(cluster__in=cluster_ids).delete()
    SettledUse.objects.bulk_create(_final_uses(_sole_attempts(cluster_ids)))


def _sole_attempts(cluster_ids: Collection[int]) -> Iterable[Attempt]:
    """Return the attempts that had one of these terminated clusters alone, their jobs locked."""
    others = Attempt.objects.filter(cluster=OuterRef("cluster")).exclude(pk=OuterRef("pk"))
    is_billed = Q(cluster__usd_per_hour=None) | Q(cluster__billed_at__gte=F("cluster__gone_at"))
    is_small = Q(cluster__usd=None) | Q(cluster__usd__lt=MOST_USD)
    rows = Attempt.objects.filter(
        is_billed & is_small & ~Exists(others),
        cluster__in=cluster_ids,
        cluster__status=ClusterStatus.GONE,
        cluster__stopped_at=None,
        cluster__is_reusable=False,
        cluster__fingerprint="",
    )
    locked = rows.select_for_update(of=("job",), no_key=True, skip_locked=True)
    return locked.select_related("job", "cluster").only(
        *("job__submitted_by", "job__request_options", "cluster__project", "cluster__num_nodes"),
        *("cluster__created_at", "cluster__gone_at", "cluster__usd"),
    )


def _final_uses(attempts: Iterable[Attempt]) -> Iterable[SettledUse]:
    for attempt in attempts:
        job, cluster = attempt.job, attempt.cluster
        if cluster is None or cluster.gone_at is None:
            continue
        day = cluster.created_at.astimezone(timezone.utc).date()
        if cluster.gone_at.astimezone(timezone.utc).date() == day:
            yield SettledUse(
                cluster=cluster,
                project_id=cluster.project_id,
                day=day,
                job=job,
                user_id=job.submitted_by_id,
                gpus=known_count(job.request_options.get("resources") or {}),
                micro_usd=int((cluster.usd or NOTHING).scaleb(6)),
                node_hours=cluster.num_nodes * ((cluster.gone_at - cluster.created_at) / _HOUR),
            )
