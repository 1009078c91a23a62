"""Terminate clusters that are no longer needed, and repeat until they no longer exist."""

from __future__ import annotations

import logging

from django.db import transaction

from jobs.actions.clusters.settle import settle
from jobs.backends import registry
from jobs.background.exclusive import LockSpace, exclusive
from jobs.background.hints import wake_on_commit
from jobs.errors import BackendError, NotYetGoneError, StillLookingError
from jobs.ground import clock
from jobs.live.channel import publish_on_commit
from jobs.models import AttemptStage, Cluster
from jobs.statuses import ClusterStatus, JobStatus, StageName
from monarch_client.crash_points import reach

log = logging.getLogger(__name__)


def due() -> list[int]:
    """Return the clusters to terminate."""
    return list(Cluster.objects.to_tear_down().values_list("pk", flat=True))


def step(cluster_id: int) -> None:
    """Request the termination of one cluster. Safe to repeat; a crash loses nothing."""
    with exclusive(LockSpace.CLUSTER, cluster_id) as alone:
        if not alone:
            return
        cluster = Cluster.objects.to_tear_down().filter(pk=cluster_id).first()
        if cluster is None:
            return
        _begin(cluster)
        reach("teardown.begun")
        try:
            registry.get(cluster.backend_name).tear_down(cluster.name)
        except BackendError as error:
            # Each tick requests it again, without end: a machine must not be left running.
            takes_time = isinstance(error, (NotYetGoneError, StillLookingError))
            log.log(
                logging.INFO if takes_time else logging.WARNING,
                "not torn down yet: %s",
                error,
                extra={"action": "teardown", "cluster": cluster.name},
            )
            Cluster.objects.filter(pk=cluster_id).update(backend_status=str(error)[:200])
            return
        reach("teardown.asked")
        _end(cluster)


@transaction.atomic
def _begin(cluster: Cluster) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(status=ClusterStatus.STOPPING)
    # Stages that an earlier try began stay as they are.
    AttemptStage.objects.bulk_create(
        (
            AttemptStage(attempt_id=pk, name=StageName.TEARDOWN, started_at=clock.now())
            for pk in cluster.attempts.values_list("pk", flat=True)
        ),
        ignore_conflicts=True,
    )


@transaction.atomic
def _end(cluster: Cluster) -> None:
    now = clock.now()
    Cluster.objects.filter(pk=cluster.pk).update(status=ClusterStatus.GONE, gone_at=now)
    settle([cluster.pk])
    # Specifications of jobs may be long.
    attempts = cluster.attempts.select_related("job").only("cluster", "job__status", "job__project")
    stages = AttemptStage.objects.filter(attempt__in=list(attempts), name=StageName.TEARDOWN)
    stages.filter(ended_at=None).update(ended_at=now)
    for attempt in attempts:
        publish_on_commit(attempt.job)
        if attempt.job.status == JobStatus.RECOVERING:
            wake_on_commit("recovering", attempt.job_id)
    wake_on_commit("queue")
