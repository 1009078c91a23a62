"""Compare all clusters of the backends with the portal's rows, so that no machine is forgotten.

A cluster with a row is terminated if the row is no longer needed. A stray cluster with a name of
this installation, such as after a restored backup, is shown and left alone until an administrator
decides. Clusters of others are shown.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError

from jobs.actions.clusters.strays import note_strays, ordered_strays
from jobs.actions.clusters.take_down import release_unneeded, take_down_again, unneeded_since
from jobs.backends import registry
from jobs.backends.base import ClusterKeeper, SeenCluster
from jobs.background.exclusive import LockSpace, exclusive
from jobs.background.hints import wake_later
from jobs.errors import BackendError, NotYetGoneError, StillLookingError
from jobs.ground import clock
from jobs.live.channel import publish_clusters_on_commit
from jobs.models import Cluster, Installation
from jobs.reconcilers import missing
from jobs.statuses import ClusterStatus

log = logging.getLogger(__name__)

ASK_AGAIN_S = 3.0
# The columns that are compared. There may be thousands of clusters.
_COMPARED = (
    "name",
    "status",
    "project_id",
    "infra",
    "resources",
    "backend_key",
    "usd_per_hour",
)


def grace() -> timedelta:
    """Return how long rows and a backend may differ."""
    return timedelta(minutes=settings.MPORTAL_ORPHAN_GRACE_MINUTES)


def step() -> None:
    """Compare the clusters of every backend. Safe to repeat; one backend does not delay others."""
    with exclusive(LockSpace.ORPHANS) as alone:
        if not alone:
            return
        for cluster in unneeded_since(clock.now() - grace()):
            release_unneeded(cluster, "its jobs have ended, and it was not released.")
        for name, backend in registry.keeping().items():
            _sweep(name, backend)


def _sweep(name: str, backend: ClusterKeeper) -> None:
    try:
        # Before the rows are read: every cluster in the list has its row by then.
        seen = backend.existing()
        _compare(name, seen)
        _carry_out_orders(name, backend)
    except StillLookingError:
        wake_later("orphans", delay_s=ASK_AGAIN_S)
    except BackendError as error:
        log.warning("not swept: %s", error, extra={"action": "orphans", "backend": name})
    except DatabaseError:
        raise
    except Exception:
        log.exception("not swept", extra={"action": "orphans", "backend": name})


def _compare(backend_name: str, seen: list[SeenCluster]) -> None:
    prefix = f"mp{Installation.current().key}-"
    own = {each.name: each for each in seen if each.name.startswith(prefix)}
    rows = list(Cluster.objects.filter(backend_name=backend_name, name__in=own).only(*_COMPARED))
    limit = clock.now() - grace()
    for row in rows:
        _look_at(row, own[row.name], limit)
    known = {row.name for row in rows}
    note_strays(backend_name, prefix, [each for each in seen if each.name not in known])
    missing.note(backend_name, {each.name for each in seen}, limit)


def _look_at(row: Cluster, seen: SeenCluster, limit: datetime) -> None:
    if row.status == ClusterStatus.GONE:
        if take_down_again(row, gone_before=limit):
            context = {"action": "orphan_found", "cluster": row.name}
            log.warning("a cluster was there again after its end", extra=context)
        return
    reported = {
        "infra": seen.infra[:100],
        "resources": seen.resources[:200],
        "backend_key": seen.key[:64],
        "usd_per_hour": seen.usd_per_hour,
    }
    news = {name: value for name, value in reported.items() if value not in ("", None)}
    if any(getattr(row, name) != value for name, value in news.items()):
        Cluster.objects.filter(pk=row.pk).update(**news)
        publish_clusters_on_commit(row.project_id)


def _carry_out_orders(backend_name: str, backend: ClusterKeeper) -> None:
    for stray in ordered_strays(backend_name):
        context = {"action": "stray_down", "cluster": stray.name}
        try:
            backend.tear_down(stray.name)
        except NotYetGoneError:
            log.info("stray cluster is terminated", extra=context)
        except BackendError as error:
            # The next comparison requests it again, until the cluster is terminated.
            log.warning("a stray is not taken down yet: %s", error, extra=context)
        else:
            stray.delete()
