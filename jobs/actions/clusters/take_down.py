"""The actions of the portal and of people on clusters, other than running jobs on them."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from jobs.actions.clusters.settle import settle
from jobs.actions.jobs.history import note_action, record_note
from jobs.audit.record import record
from jobs.background.hints import wake_on_commit
from jobs.errors import ConflictError
from jobs.ground import clock
from jobs.live.channel import publish_clusters_on_commit
from jobs.models import Attempt, Cluster
from jobs.permissions import Actor, require_cluster
from jobs.statuses import FINAL_STATUSES, ClusterStatus


@transaction.atomic
def take_down_cluster(actor: Actor, cluster: Cluster) -> Cluster:
    """Request the end of a cluster on which nothing runs; a second request changes nothing.

    ConflictError while a job is on it, or when it was terminated.
    """
    require_cluster(actor, cluster)
    row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    if row.status == ClusterStatus.GONE:
        raise ConflictError(f"{row.name} is already terminated.")
    if row.release_requested_at is not None:
        return row
    attempts = row.attempts.select_related("job")
    if busy := attempts.filter(ended_at=None).first():
        raise ConflictError(f"Job {busy.job_id} is on {row.name}; cancel the job.")
    row.release_requested_at = clock.now()
    row.save(update_fields=["release_requested_at"])
    after = {"release_requested_at": row.release_requested_at.isoformat()}
    record(actor, "cluster_down", row, before={"release_requested_at": None}, after=after)
    if last := attempts.order_by("-pk").first():
        note_action(last.job, actor, "cluster_down", f"Takes {row.name} down")
    publish_clusters_on_commit(row.project_id)
    wake_on_commit("teardown", row.pk)
    return row


@transaction.atomic
def take_down_again(cluster: Cluster, gone_before: datetime) -> bool:
    """Reset a row terminated before that moment whose cluster exists; return whether it was.

    Such a cluster was launched by a process that slept while it was terminated.
    """
    back = Cluster.objects.filter(
        pk=cluster.pk, status=ClusterStatus.GONE, gone_at__lt=gone_before
    ).update(status=ClusterStatus.STOPPING, release_requested_at=clock.now(), gone_at=None)
    if back:
        settle([cluster.pk])
        _note(cluster, f"{cluster.name} was there again after its end; it is taken down.")
        wake_on_commit("teardown", cluster.pk)
    return bool(back)


@transaction.atomic
def release_unneeded(cluster: Cluster, why: str, *, verb: str = "orphan") -> bool:
    """Request the end of a cluster without open attempts; return whether it was requested now."""
    row = Cluster.objects.existing().select_for_update(no_key=True).filter(pk=cluster.pk).first()
    # Checked after the lock, which every process that adds an attempt to the cluster takes as well.
    if row is None or row.release_requested_at or row.attempts.filter(ended_at=None).exists():
        return False
    row.release_requested_at = clock.now()
    row.save(update_fields=["release_requested_at"])
    _note(row, f"{row.name} is taken down: {why}", verb)
    wake_on_commit("teardown", row.pk)
    return True


def unneeded_since(moment: datetime) -> list[Cluster]:
    """Return existing clusters that no job needs and whose jobs all ended before `moment`."""
    needed = Q(ended_at=None) | Q(ended_at__gt=moment) | ~Q(job__status__in=FINAL_STATUSES)
    on_it = Attempt.objects.filter(needed, cluster=OuterRef("pk"))
    rows = Cluster.objects.existing().filter(~Exists(on_it), created_at__lt=moment)
    return list(rows.filter(Q(is_reusable=False) | Q(idle_since=None), release_requested_at=None))


def _note(cluster: Cluster, message: str, verb: str = "orphan") -> None:
    attempt = cluster.attempts.select_related("job").order_by("-pk").first()
    if attempt is not None:
        record_note(attempt.job, message, attempt, verb=verb)
    publish_clusters_on_commit(cluster.project_id)
