"""Store the cost of clusters as backends report it, while they exist and once after."""

from __future__ import annotations

import logging
from binascii import crc32
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Prefetch, Q

from jobs.actions.clusters.settle import settle
from jobs.backends import registry
from jobs.backends.base import Bill, ClusterKeeper
from jobs.background.exclusive import LockSpace, exclusive
from jobs.errors import BackendError, StillLookingError
from jobs.ground import clock
from jobs.ground.outages import is_database_away
from jobs.live.channel import publish_clusters_on_commit
from jobs.models import Attempt, Cluster
from jobs.policies.costs import per_hour, rounded, shares
from jobs.spending import OF_COST, charge_of, is_waiting_kind, uses_of
from jobs.statuses import ClusterStatus

log = logging.getLogger(__name__)

# How often an existing cluster is billed, and how long the portal waits for the last bill.
EVERY = timedelta(minutes=1)
LAST_BILL_WAITED_FOR = timedelta(hours=1)
# Bills of one backend in one step. If it has more clusters, each is billed less often: bills of
# thousands must not delay jobs.
AT_ONCE = 200
# How long after a cluster's end the last bill is requested. A report before that may be old:
# SkyPilot caches its report for ten seconds, and while machines are terminated it includes seconds
# that are not charged in the end.
SETTLED_AFTER = timedelta(seconds=15)
# The columns of a cluster by which its bill is divided. There may be hundreds of clusters.
_READ = ("name", "backend_name", "status", "is_reusable", "fingerprint", *OF_COST)


def due(backend_name: str) -> list[Cluster]:
    """Return clusters whose bill is a minute old or that just ended, the oldest bill first."""
    now = clock.now()
    gone = Q(status=ClusterStatus.GONE)
    old = Q(billed_at=None) | Q(billed_at__lt=now - EVERY)
    is_settled = Q(gone_at__lt=now - SETTLED_AFTER)
    is_missing = Q(billed_at=None) | Q(billed_at__lt=F("gone_at") + SETTLED_AFTER)
    last_is_missing = gone & is_settled & is_missing
    attempts = Attempt.objects.only("cluster_id", "created_at", "ended_at", "usd")
    rows = Cluster.objects.filter((~gone & old) | last_is_missing, backend_name=backend_name)
    rows = rows.only(*_READ).prefetch_related(Prefetch("attempts", attempts))
    return list(rows.order_by(F("billed_at").asc(nulls_first=True), "pk")[:AT_ONCE])


def is_due() -> bool:
    """Whether any enabled backend has bills."""
    return bool(registry.keeping())


def step() -> None:
    """Request all bills that are due. Safe to repeat; a crash loses nothing."""
    for name, backend in registry.keeping().items():
        # By backend: a slow backend does not delay the others.
        with exclusive(LockSpace.BILLING, crc32(name.encode())) as alone:
            for cluster in due(name) if alone else ():
                _ask(backend, cluster)


def _ask(backend: ClusterKeeper, cluster: Cluster) -> None:
    # Before the request: the answer does not include what is spent after it.
    asked_at = clock.now()
    context = {"action": "bill", "cluster": cluster.name}
    try:
        _store(cluster, backend.bill(cluster.name, cluster.created_at), asked_at)
    except StillLookingError:
        return
    except BackendError as error:
        log.warning("no bill: %s", error, extra=context)
    except Exception as error:
        if is_database_away(error):
            raise
        # An error of one cluster must not keep others from their bills.
        log.exception("no bill", extra=context)


@transaction.atomic
def _store(cluster: Cluster, bill: Bill | None, asked_at: datetime) -> None:
    """Store a bill, and the final cost of a terminated cluster."""
    _divide(cluster, bill, asked_at)
    if cluster.gone_at is not None:
        settle([cluster.pk])


def _divide(cluster: Cluster, bill: Bill | None, asked_at: datetime) -> None:
    """Divide a bill among the attempts, unless the cluster ended since its row was read.

    Then it is billed again: the row that was read is too old for the last bill.
    """
    gone_at = cluster.gone_at
    row = Cluster.objects.filter(pk=cluster.pk, gone_at=gone_at)
    if bill is None:
        # It may never have cost anything; the bill is requested again for some time.
        if gone_at is None or asked_at > gone_at + LAST_BILL_WAITED_FOR:
            row.update(billed_at=asked_at)
        return
    usd = rounded(bill.usd)
    changes = {"usd": usd, "billed_at": asked_at}
    price = per_hour(usd, bill.duration_s)
    if cluster.usd_per_hour is None and price is not None:
        changes["usd_per_hour"] = price
    if not row.update(**changes):
        return
    divided = shares(
        usd,
        uses_of(cluster.attempts.all()),
        began=cluster.created_at,
        until=charge_of(cluster).until(asked_at),
        waits=is_waiting_kind(cluster),
    )
    for attempt in cluster.attempts.all():
        share = divided.of_attempts.get(attempt.pk, attempt.usd)
        if share != attempt.usd:
            Attempt.objects.filter(pk=attempt.pk).update(usd=share)
    if usd != cluster.usd:
        publish_clusters_on_commit(cluster.project_id)
