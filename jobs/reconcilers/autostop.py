"""End idle warm clusters by their idle policies: stop them first, or terminate them."""

from __future__ import annotations

import logging

from django.db import transaction

from jobs.actions.attempts.end_attempt import take_down
from jobs.actions.clusters.warm_clusters import begin_switching_off
from jobs.actions.jobs.history import record_note
from jobs.backends import registry
from jobs.backends.base import ClusterKeeper, is_keeping
from jobs.background.exclusive import LockSpace, exclusive
from jobs.background.hints import wake_later, wake_on_commit
from jobs.errors import BackendError, BackendUnavailableError, NotYetGoneError
from jobs.ground import clock
from jobs.limits import backstop_of, idle_limit
from jobs.models import Cluster
from jobs.policies.idle import (
    IdlePolicy,
    Kept,
    SwitchOff,
    TakeDown,
    Wait,
    decide,
    longer_backstop,
)
from jobs.queueing.warm_requests import is_named
from jobs.statuses import ClusterStatus
from monarch_client.crash_points import reach

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 1.0


def due() -> list[int]:
    """Return the idle warm clusters."""
    return list(Cluster.objects.waiting().values_list("pk", flat=True))


def step(cluster_id: int) -> None:
    """Apply the idle policy of one warm cluster. Safe to repeat; a crash loses nothing."""
    with exclusive(LockSpace.CLUSTER, cluster_id) as alone:
        if not alone:
            return
        rows = Cluster.objects.waiting().select_related("project")
        cluster = rows.filter(pk=cluster_id).first()
        if cluster is None or cluster.idle_since is None:
            return
        try:
            backend = registry.get(cluster.backend_name)
            if is_keeping(backend):
                _look_at(cluster, backend)
        except BackendUnavailableError as error:
            # The next tick asks again.
            log.warning("backend away: %s", error, extra=_context(cluster))


def _look_at(cluster: Cluster, backend: ClusterKeeper) -> None:
    assert cluster.idle_since is not None  # noqa: S101 - looked at by the caller
    if cluster.status == ClusterStatus.STOPPING:
        _switch_off(cluster, backend)
        return
    kept = Kept(cluster.idle_since, IdlePolicy.from_dict(cluster.idle_policy), cluster.stopped_at)
    limit, named = idle_limit(cluster.project), False
    decision = decide(kept, limit, clock.now())
    if not isinstance(decision, Wait):
        # Only now: the query of waiting jobs takes longer than all else here.
        named = is_named(cluster)
        decision = decide(kept, limit, clock.now(), is_named=named)
    match decision:
        case TakeDown(reason=reason):
            _take_down(cluster, reason)
        case SwitchOff(reason=reason):
            if _begin_switching_off(cluster, reason):
                _switch_off(cluster, backend)
        case _:
            _move_backstop(cluster, backend, is_named=named)


@transaction.atomic
def _take_down(cluster: Cluster, reason: str) -> None:
    if _still_waits(cluster):
        take_down(cluster.pk)
        _record_change(cluster, f"Warm cluster {cluster.name} is terminated. {reason}")


@transaction.atomic
def _begin_switching_off(cluster: Cluster, reason: str) -> bool:
    """Mark a cluster that no job has taken, so that it takes none; return whether it is marked."""
    if not _still_waits(cluster):
        return False
    begin_switching_off(cluster.pk)
    _record_change(cluster, f"Warm cluster {cluster.name} is stopped. {reason}")
    transaction.on_commit(lambda: reach("autostop.begun"))
    return True


def _switch_off(cluster: Cluster, backend: ClusterKeeper) -> None:
    try:
        backend.stop_machines(cluster.name)
    except NotYetGoneError:
        wake_later("autostop", cluster.pk, delay_s=LOOK_AGAIN_S)
        return
    except BackendUnavailableError:
        raise
    except BackendError as error:
        # Unused machines must not be left running.
        log.warning("not switched off: %s", error, extra=_context(cluster))
        _take_down(cluster, f"It could not be stopped: {error.message}")
        return
    reach("autostop.asked")
    with transaction.atomic():
        if _still_waits(cluster):
            Cluster.objects.filter(pk=cluster.pk).update(
                status=ClusterStatus.STOPPED, stopped_at=clock.now()
            )
            wake_on_commit("queue")


def _move_backstop(cluster: Cluster, backend: ClusterKeeper, *, is_named: bool) -> None:
    """Delay the backend's own stop, if a job or a user needs the cluster longer."""
    backstop, minutes = cluster.idle_policy.get("backstop", 0), backstop_of(cluster)
    if is_named and cluster.idle_since is not None:
        idle = clock.now() - cluster.idle_since
        minutes = max(minutes, longer_backstop(backstop, idle_limit(cluster.project), idle))
    if cluster.status != ClusterStatus.UP or minutes <= backstop:
        return
    backend.autostop(cluster.name, minutes, down=True)
    policy = {**cluster.idle_policy, "backstop": minutes}
    Cluster.objects.filter(pk=cluster.pk, idle_policy=cluster.idle_policy).update(
        idle_policy=policy
    )


def _still_waits(cluster: Cluster) -> bool:
    """Whether no job has taken the cluster since it was read. Locks its row."""
    rows = Cluster.objects.waiting().filter(pk=cluster.pk, idle_since=cluster.idle_since)
    return rows.select_for_update(no_key=True).exists()


def _record_change(cluster: Cluster, message: str) -> None:
    last = cluster.attempts.select_related("job").order_by("-pk").first()
    if last is not None:
        record_note(last.job, message, last, verb="cluster_ended")


def _context(cluster: Cluster) -> dict[str, object]:
    return {"action": "autostop", "cluster": cluster.name}
