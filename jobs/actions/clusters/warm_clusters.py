"""Take a warm cluster for a job, and keep or give up a cluster when its job has ended.

A cluster that waits for a job has `idle_since`; taking it away and ending it are updates guarded
by that column, under the row's lock, so that only one of them happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from jobs.actions.jobs.history import record_note
from jobs.background.hints import wake_on_commit
from jobs.errors import ClusterGoneError, StaleJobError
from jobs.ground import clock
from jobs.limits import idle_limit
from jobs.models import Attempt, AttemptStage, Cluster, Job, Queue
from jobs.policies.idle import IdlePolicy, backstop_minutes
from jobs.policies.reuse import leaves_healthy
from jobs.queueing.limits import load_queues
from jobs.queueing.warm_clusters import BEST_FIRST, OFF_SINCE, as_kept, joinable
from jobs.queueing.warm_requests import cluster_named, may_take_kept, wish_of
from jobs.scheduling.kept import Wish, fits, why_not
from jobs.spending import is_waiting_kind
from jobs.statuses import ClusterStatus, StageName, StopReason
from monarch_client.crash_points import reach


@transaction.atomic(savepoint=False)
def take_cluster(job: Job, only: str = "") -> Cluster | None:
    """The cluster on which `job` starts, if it is one that was kept; call it in a transaction.

    `only` that one of this name, where somebody has chosen it already. StaleJobError: the one it
    names is not free just now. ClusterGoneError: there is none such.
    """
    if not may_take_kept(job):
        return None
    queues = load_queues()
    wish = wish_of(job, queues)
    if wish.cluster:
        return _take(job, _named(job, wish, queues))
    waiting = joinable(job.project).filter(
        fingerprint=wish.fingerprint, backend_name=job.backend_name, idle_since__isnull=False
    )
    if only:
        waiting = waiting.filter(name=only)
    # Who finds it locked leaves it to the other, and looks for the next one.
    free = waiting.order_by(*BEST_FIRST).select_for_update(no_key=True, skip_locked=True)
    for cluster in free:
        if fits(wish, as_kept(cluster, queues)):
            return _take(job, cluster)
    return None


def idle_policy_of(job: Job) -> dict[str, Any]:
    """What `job` says about its cluster's idleness, as it is stored with the cluster.

    `backstop`: the idle minutes that the backend itself was told last.
    """
    policy = IdlePolicy.from_dict(job.spec.get("portal", {}).get("idle") or {})
    backstop = backstop_minutes(policy, idle_limit(job.project), None)
    return {**policy.to_dict(), "backstop": backstop}


def keep_cluster(attempt: Attempt) -> bool:
    """Whether the attempt's cluster stays, now that it has ended; call it in a transaction.

    It stays for those that are still on it, and for the next job if the machines are sound.
    """
    if attempt.cluster is not None and not is_waiting_kind(attempt.cluster):
        # It never was for anybody else.
        return False
    cluster = Cluster.objects.select_for_update(no_key=True).get(attempts=attempt)
    if cluster.release_requested_at is not None or not cluster.is_reusable:
        return _has_others(cluster, attempt) and cluster.release_requested_at is None
    reason = StopReason(attempt.stop_reason) if attempt.stop_reason else StopReason.BACKEND
    if reason == StopReason.NO_CAPACITY and cluster_named(attempt.job) == cluster.name:
        # It could not be switched on: its disks are what the job names it for.
        if not _has_others(cluster, attempt):
            _keep_off(cluster)
        return True
    is_sound = attempt.contacted_at is not None and leaves_healthy(reason)
    if not is_sound:
        let_nobody_in(cluster.pk)
    if _has_others(cluster, attempt):
        return True
    if is_sound:
        _keep(cluster, attempt)
    return is_sound


def begin_switching_off(cluster_id: int) -> None:
    """Mark a cluster without a job, whose machines go: from here on it takes none.

    Call it in a transaction that holds the row.
    """
    row = Cluster.objects.only("idle_policy").get(pk=cluster_id)
    policy = {**row.idle_policy, OFF_SINCE: clock.now().timestamp()}
    Cluster.objects.filter(pk=cluster_id).update(status=ClusterStatus.STOPPING, idle_policy=policy)


def is_shared(attempt: Attempt) -> bool:
    """Whether other attempts are on its cluster, which must not go with this one."""
    return attempt.cluster is not None and _has_others(attempt.cluster, attempt)


def let_nobody_in(cluster_id: int) -> None:
    """See to it that the cluster takes no further job, and goes with the last one on it."""
    Cluster.objects.filter(pk=cluster_id).update(is_reusable=False)


def _named(job: Job, wish: Wish, queues: Mapping[str, Queue]) -> Cluster:
    found = joinable(job.project).filter(name=wish.cluster)
    cluster = found.select_for_update(no_key=True).first()
    if cluster is None or cluster.num_nodes < job.num_nodes:
        raise ClusterGoneError(f"The project keeps no cluster {wish.cluster} any more.")
    if why := why_not(wish, as_kept(cluster, queues)):
        raise StaleJobError(why, job=job.pk)
    return cluster


def _take(job: Job, cluster: Cluster) -> Cluster:
    changes: dict[str, Any] = {"idle_since": None, "stopped_at": None}
    if cluster.status == ClusterStatus.STOPPED:
        changes["status"] = ClusterStatus.STARTING
    if job.spec.get("portal", {}).get("reuse"):
        # A backend goes by what it was told last, whichever job is on the machines.
        told = {"backstop": cluster.idle_policy.get("backstop", 0)}
        changes["idle_policy"] = {**idle_policy_of(job), **told}
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


def _has_others(cluster: Cluster, attempt: Attempt) -> bool:
    return Attempt.objects.open().filter(cluster=cluster).exclude(pk=attempt.pk).exists()
