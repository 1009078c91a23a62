"""Looks over everything that backends hold, and sees to it that no machine is forgotten.

Three kinds of clusters are found: those with a row, which are taken down when the row says that
nobody needs them; those with a name of this installation and no row, as after a restored backup,
which are shown and left alone until an administrator decides; and those of others, which are shown.
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
from jobs.reconcilers import unseen
from jobs.statuses import ClusterStatus

log = logging.getLogger(__name__)

ASK_AGAIN_S = 3.0
# There may be thousands of clusters, of each of which as much is looked at.
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
    """How long what the rows and a backend say may differ."""
    return timedelta(minutes=settings.MPORTAL_ORPHAN_GRACE_MINUTES)


def step() -> None:
    """One sweep. Safe to repeat; a backend that can't be asked keeps no other from its turn."""
    with exclusive(LockSpace.ORPHANS) as alone:
        if not alone:
            return
        for cluster in unneeded_since(clock.now() - grace()):
            release_unneeded(cluster, "its jobs have ended, and nobody had let go of it.")
        for name, backend in registry.keeping().items():
            _sweep(name, backend)


def _sweep(name: str, backend: ClusterKeeper) -> None:
    try:
        # Before the rows are read: whatever is in the list had its row by then.
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
    unseen.note(backend_name, {each.name for each in seen}, limit)


def _look_at(row: Cluster, seen: SeenCluster, limit: datetime) -> None:
    if row.status == ClusterStatus.GONE:
        if take_down_again(row, gone_before=limit):
            context = {"action": "orphan_found", "cluster": row.name}
            log.warning("a cluster was there again after its end", extra=context)
        return
    told = {
        "infra": seen.infra[:100],
        "resources": seen.resources[:200],
        "backend_key": seen.key[:64],
        "usd_per_hour": seen.usd_per_hour,
    }
    news = {name: value for name, value in told.items() if value not in ("", None)}
    if any(getattr(row, name) != value for name, value in news.items()):
        Cluster.objects.filter(pk=row.pk).update(**news)
        publish_clusters_on_commit(row.project_id)


def _carry_out_orders(backend_name: str, backend: ClusterKeeper) -> None:
    for stray in ordered_strays(backend_name):
        context = {"action": "stray_down", "cluster": stray.name}
        try:
            backend.tear_down(stray.name)
        except NotYetGoneError:
            log.info("a stray goes down", extra=context)
        except BackendError as error:
            # Asked again by the next sweep, until it is gone.
            log.warning("a stray is not taken down yet: %s", error, extra=context)
        else:
            stray.delete()
