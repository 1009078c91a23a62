"""Keeps what clusters have cost as their backends report it, while they exist and once after."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from jobs import clock
from jobs.backends import registry
from jobs.backends.base import Bill
from jobs.errors import BackendError, StillLookingError
from jobs.live.channel import publish_clusters_on_commit
from jobs.models import Attempt, Cluster
from jobs.policies.costs import Use, per_hour, rounded, shares
from jobs.reconcilers.exclusive import LockSpace, exclusive
from jobs.statuses import ClusterStatus

log = logging.getLogger(__name__)

# How often a cluster that exists is billed, and how long a last bill is waited for.
EVERY = timedelta(minutes=1)
LAST_BILL_WAITED_FOR = timedelta(hours=1)


def due() -> list[int]:
    """Clusters whose bill is a minute old, and those that went since their last one."""
    now = clock.now()
    gone = Q(status=ClusterStatus.GONE)
    old = Q(billed_at=None) | Q(billed_at__lt=now - EVERY)
    last_is_missing = gone & (Q(billed_at=None) | Q(billed_at__lt=F("gone_at")))
    rows = Cluster.objects.filter((~gone & old) | last_is_missing)
    return list(rows.filter(backend_name__in=registry.keeping()).values_list("pk", flat=True))


def step(cluster_id: int) -> None:
    """Ask for one bill and divide it among the attempts. Safe to repeat; a crash loses nothing."""
    with exclusive(LockSpace.BILLING, cluster_id) as alone:
        cluster = Cluster.objects.filter(pk=cluster_id).first() if alone else None
        backend = registry.keeping().get(cluster.backend_name) if cluster else None
        if cluster is None or backend is None:
            return
        # A moment before the question: what is spent after it is not in the answer.
        asked_at = clock.now()
        try:
            bill = backend.bill(cluster.name, cluster.created_at)
        except StillLookingError:
            return
        except BackendError as error:
            log.warning("no bill: %s", error, extra={"action": "bill", "cluster": cluster.name})
            return
        _store(cluster, bill, asked_at)


@transaction.atomic
def _store(cluster: Cluster, bill: Bill | None, asked_at: datetime) -> None:
    gone_at = cluster.gone_at
    if bill is None:
        # It may never have come to cost anything; asked again for a while.
        if gone_at is None or asked_at > gone_at + LAST_BILL_WAITED_FOR:
            Cluster.objects.filter(pk=cluster.pk).update(billed_at=asked_at)
        return
    usd = rounded(bill.usd)
    changes = {"usd": usd, "billed_at": asked_at}
    price = per_hour(usd, bill.duration_s)
    if cluster.usd_per_hour is None and price is not None:
        changes["usd_per_hour"] = price
    Cluster.objects.filter(pk=cluster.pk).update(**changes)
    uses = [
        Use(attempt.pk, attempt.created_at, attempt.ended_at) for attempt in cluster.attempts.all()
    ]
    divided = shares(
        usd,
        uses,
        began=cluster.created_at,
        until=cluster.stopped_at or gone_at or asked_at,
        # Also of one that takes no further job: it did.
        waits=cluster.is_reusable or bool(cluster.fingerprint),
    )
    for attempt_id, share in divided.of_attempts.items():
        Attempt.objects.filter(pk=attempt_id).update(usd=share)
    if usd != cluster.usd:
        publish_clusters_on_commit(cluster.project_id)
