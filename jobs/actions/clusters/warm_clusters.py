"""Take a warm cluster for a job, and keep or give up a cluster when its job has ended.

A cluster that waits for a job has `idle_since`; taking it away and ending it are updates guarded
by that column, under the row's lock, so that only one of them happens.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from jobs.actions.jobs.history import record_note
from jobs.background.hints import wake_on_commit
from jobs.errors import ClusterGoneError, StaleJobError
from jobs.ground import clock
from jobs.limits import idle_limit
from jobs.models import Attempt, AttemptStage, Cluster, Job
from jobs.policies.idle import IdlePolicy, backstop_minutes
from jobs.policies.reuse import leaves_healthy
from jobs.queueing.limits import load_queues, pool_of
from jobs.queueing.warm_clusters import BEST_FIRST, OFF_SINCE, READY, joinable, no_such_cluster
from jobs.spending import is_waiting_kind
from jobs.statuses import ClusterStatus, StageName, StopReason
from monarch_client.crash_points import reach


@transaction.atomic(savepoint=False)
def take_cluster(job: Job, onto: str) -> Cluster:
    """Take the warm cluster `onto` for `job`, for which a plan chose it; call it in a transaction.

    ClusterGoneError: the job names it, and it was terminated. StaleJobError: it is not free now.
    """
    cluster = joinable(job.project).filter(name=onto).select_for_update(no_key=True).first()
    if job.request.cluster and (cluster is None or cluster.num_nodes < job.num_nodes):
        raise ClusterGoneError(no_such_cluster(onto))
    if cluster is None or not _takes(cluster, job):
        raise StaleJobError(f"Cluster {onto} is not free any more.", job=job.pk)
    return _take(job, cluster)


@transaction.atomic(savepoint=False)
def take_any_cluster(job: Job) -> Cluster | None:
    """Take a warm cluster for a job that recovers, without a plan; None if there is none for it.

    ClusterGoneError and StaleJobError as for `take_cluster`, where it names one.
    """
    if name := job.request.cluster:
        return take_cluster(job, name)
    if not job.fingerprint:
        return None
    alike = joinable(job.project).filter(fingerprint=job.fingerprint, idle_since__isnull=False)
    # A cluster that another process has locked is left to that one.
    for cluster in alike.order_by(*BEST_FIRST).select_for_update(no_key=True, skip_locked=True):
        if _takes(cluster, job):
            return _take(job, cluster)
    return None


def _takes(cluster: Cluster, job: Job) -> bool:
    """Whether the cluster is idle, and one of the pool from which the job's queue has machines."""
    if cluster.idle_since is None or cluster.status not in READY:
        return False
    queues = load_queues()
    own = pool_of(queues.get(cluster.queue_name), cluster.backend_name)
    return own == pool_of(queues.get(job.queue_name), job.backend_name)


def idle_policy_of(job: Job) -> dict[str, Any]:
    """Return the idle policy of `job`, as it is stored with the cluster.

    `backstop`: the idle minutes that were last set at the backend itself.
    """
    policy = job.request.idle
    backstop = backstop_minutes(policy, idle_limit(job.project), None)
    return {**policy.to_dict(), "backstop": backstop}


def keep_warm(attempt: Attempt) -> bool:
    """Keep the cluster of an attempt that has ended for a next job, if its machines are sound.

    Return whether it is kept. Call it in a transaction.
    """
    if attempt.cluster is not None and not is_waiting_kind(attempt.cluster):
        # It was never shared.
        return False
    cluster = Cluster.objects.select_for_update(no_key=True).get(attempts=attempt)
    if cluster.release_requested_at is not None or not cluster.is_reusable:
        return False
    reason = StopReason(attempt.stop_reason) if attempt.stop_reason else StopReason.BACKEND
    if reason == StopReason.NO_CAPACITY and attempt.job.request.cluster == cluster.name:
        # It could not be switched on: its disks are what the job names it for.
        _keep_off(cluster)
        return True
    is_sound = attempt.contacted_at is not None and leaves_healthy(reason)
    if is_sound:
        _keep(cluster, attempt)
    else:
        close_to_jobs(cluster.pk)
    return is_sound


def begin_switching_off(cluster_id: int) -> None:
    """Mark a cluster without a job, whose machines go: from here on it takes none.

    Call it in a transaction that holds the row.
    """
    row = Cluster.objects.only("idle_policy").get(pk=cluster_id)
    policy = {**row.idle_policy, OFF_SINCE: clock.now().timestamp()}
    Cluster.objects.filter(pk=cluster_id).update(status=ClusterStatus.STOPPING, idle_policy=policy)


def close_to_jobs(cluster_id: int) -> None:
    """Let the cluster take no further job, and end with the last one on it."""
    Cluster.objects.filter(pk=cluster_id).update(is_reusable=False)


def _take(job: Job, cluster: Cluster) -> Cluster:
    changes: dict[str, Any] = {"idle_since": None, "stopped_at": None}
    if cluster.status == ClusterStatus.STOPPED:
        changes["status"] = ClusterStatus.STARTING
    if job.request.reuse:
        # A backend follows its last setting, whichever job is on the machines.
        last_backstop = {"backstop": cluster.idle_policy.get("backstop", 0)}
        changes["idle_policy"] = {**idle_policy_of(job), **last_backstop}
    Cluster.objects.filter(pk=cluster.pk).update(**changes)
    for name, value in changes.items():
        setattr(cluster, name, value)
    transaction.on_commit(lambda: reach("cluster.taken"))
    return cluster


def _keep(cluster: Cluster, attempt: Attempt) -> None:
    now = clock.now()
    policy = IdlePolicy.from_dict(cluster.idle_policy)
    Cluster.objects.filter(pk=cluster.pk).update(idle_since=now)
    AttemptStage.objects.get_or_create(
        attempt=attempt,
        name=StageName.TEARDOWN,
        defaults={"started_at": now, "ended_at": now, "detail": "kept for the next job"},
    )
    message = f"Cluster {cluster.name} is kept for the next job, {policy.minutes} min long."
    record_note(attempt.job, message, attempt, verb="cluster_kept")
    transaction.on_commit(lambda: reach("cluster.kept"))
    # It may be just what a queued job waits for.
    wake_on_commit("queue")


def _keep_off(cluster: Cluster) -> None:
    # Also one that was up by its row: it was switched off, or lost, behind the portal's back.
    now = clock.now()
    Cluster.objects.filter(pk=cluster.pk).update(
        status=ClusterStatus.STOPPED, idle_since=now, stopped_at=now
    )
