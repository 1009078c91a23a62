"""Clusters without a row: listed, and terminated only when an administrator orders it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from jobs.audit.record import record
from jobs.backends.base import SeenCluster
from jobs.background.hints import wake_on_commit
from jobs.errors import ConflictError, NotFoundError, PermissionDeniedError
from jobs.ground import clock
from jobs.models import Cluster, StrayCluster
from jobs.models.stray_cluster import ORDERED_BY
from jobs.permissions import Actor
from jobs.statuses import StrayKind

# Rows that one statement writes.
_AT_ONCE = 500


def note_strays(backend_name: str, own_prefix: str, seen: Iterable[SeenCluster]) -> None:
    """Let the rows show just these of that backend. First sight, and an order, are kept."""
    now, there = clock.now(), StrayCluster.objects.filter(backend_name=backend_name)
    with transaction.atomic():
        # Locked: an order that comes meanwhile would be written over.
        rows = {row.name: row for row in there.select_for_update(no_key=True).order_by("pk")}
        new, changed, names = [], [], set()
        for each in seen:
            kind = StrayKind.OWN if each.name.startswith(own_prefix) else StrayKind.FOREIGN
            row = rows.get(each.name)
            order = row.ordered_by if row else ""
            columns = {
                "kind": kind,
                "seen": _seen_values(each) | ({ORDERED_BY: order} if order else {}),
            }
            if row is None:
                new.append(StrayCluster(backend_name=backend_name, name=each.name, **columns))
            elif (row.kind, row.seen) != (columns["kind"], columns["seen"]):
                row.kind, row.seen = kind, columns["seen"]
                changed.append(row)
            names.add(each.name)
        StrayCluster.objects.bulk_create(new, ignore_conflicts=True, batch_size=_AT_ONCE)
        StrayCluster.objects.bulk_update(changed, ["kind", "seen"], batch_size=_AT_ONCE)
        there.exclude(name__in=names).delete()
        there.update(last_seen_at=now)


def take_down_stray(actor: Actor, name: str) -> StrayCluster:
    """Order the end of a quarantined cluster; the sweeper repeats it until it is terminated.

    NotFoundError: there is none, or the actor may not know. PermissionDeniedError: by a token that
    may only read. ConflictError: it is of another owner, and this portal never terminates those.
    """
    if not actor.reaches_beyond_projects:
        raise NotFoundError(f"There is no cluster {name}.")
    if actor.token is not None and actor.token.read_only:
        raise PermissionDeniedError("This token may only read. Use one that may write.")
    with transaction.atomic():
        rows = StrayCluster.objects.select_for_update(no_key=True)
        # The database takes no NUL.
        rows = rows.filter(name=name.replace("\0", ""))
        row = rows.order_by("-kind").first()
        if row is None:
            raise NotFoundError(f"There is no cluster {name}.")
        if row.kind != StrayKind.OWN:
            raise ConflictError(
                f"{name} is not this portal's. Terminate it with the tool that made it."
            )
        before, name_of_actor = {"ordered_by": row.ordered_by}, actor.user.get_username()
        row.seen = {**row.seen, ORDERED_BY: name_of_actor}
        row.save(update_fields=["seen"])
        record(actor, "cluster_down", row, before=before, after={"ordered_by": name_of_actor})
        wake_on_commit("orphans")
    return row


def ordered_strays(backend_name: str) -> list[StrayCluster]:
    """Return the backend's strays that are to be terminated and still have no row."""
    rows = StrayCluster.objects.filter(
        backend_name=backend_name, kind=StrayKind.OWN, seen__has_key=ORDERED_BY
    )
    known = set(Cluster.objects.filter(name__in=rows.values("name")).values_list("name", flat=True))
    return [row for row in rows if row.name not in known]


def _seen_values(seen: SeenCluster) -> dict[str, Any]:
    return {
        "status": seen.status,
        "infra": seen.infra,
        "resources": seen.resources,
        "num_nodes": seen.num_nodes,
        "launched_at": seen.launched_at.isoformat() if seen.launched_at else None,
        "usd_per_hour": None if seen.usd_per_hour is None else str(seen.usd_per_hour),
        "owner": seen.owner,
    }
