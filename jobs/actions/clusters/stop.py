"""Stop the machines of an idle cluster on request, and keep their disks."""

from __future__ import annotations

from django.db import transaction

from jobs.actions.clusters.warm_clusters import begin_switching_off
from jobs.actions.jobs.history import note_action
from jobs.audit.record import record
from jobs.backends import registry
from jobs.backends.base import is_keeping
from jobs.background.hints import wake_on_commit
from jobs.errors import BackendUnavailableError, ConflictError
from jobs.live.channel import publish_clusters_on_commit
from jobs.models import Cluster
from jobs.permissions import Actor, require_cluster
from jobs.statuses import ClusterStatus


def stop_cluster(actor: Actor, cluster: Cluster) -> Cluster:
    """Request that an idle cluster's machines are stopped; a job that names it starts them again.

    ConflictError if it is not up and idle, or if its infrastructure cannot keep the disks.
    """
    require_cluster(actor, cluster)
    # Asked before the row is locked: the answer may take a while.
    if why := _why_never(cluster):
        raise ConflictError(f"{cluster.name} cannot be stopped: {why} Terminate it instead.")
    return _begin(actor, cluster)


def _why_never(cluster: Cluster) -> str:
    try:
        backend = registry.get(cluster.backend_name)
    except BackendUnavailableError as error:
        return error.message
    if not is_keeping(backend):
        return f"machines of the backend {cluster.backend_name} are never stopped."
    return backend.why_no_stop(cluster.name)


@transaction.atomic
def _begin(actor: Actor, cluster: Cluster) -> Cluster:
    waiting = Cluster.objects.waiting().filter(pk=cluster.pk, status=ClusterStatus.UP)
    row = waiting.select_for_update(no_key=True).first()
    if row is None:
        raise ConflictError(f"{cluster.name} is not up and idle: only such a cluster is stopped.")
    begin_switching_off(row.pk)
    row.refresh_from_db()
    record(
        actor,
        "cluster_stop",
        row,
        before={"status": ClusterStatus.UP},
        after={"status": row.status},
    )
    last = row.attempts.select_related("job").order_by("-pk").first()
    if last is not None:
        note_action(last.job, actor, "cluster_stop", f"Stops {row.name} and keeps its disks")
    publish_clusters_on_commit(row.project_id)
    wake_on_commit("autostop", row.pk)
    return row
