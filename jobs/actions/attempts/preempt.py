"""Stop jobs for another one, which wait again, and end warm clusters that have no job."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.db import transaction

from jobs.actions.attempts.end_attempt import take_down
from jobs.actions.clusters.warm_clusters import begin_switching_off
from jobs.actions.jobs.history import record_note
from jobs.background.hints import wake_on_commit
from jobs.errors import StaleJobError
from jobs.lifecycle import move
from jobs.models import Attempt, Cluster, Job
from jobs.policies.idle import IdlePolicy
from jobs.queueing.pass_number import require_newest
from jobs.scheduling.causes import job_words
from jobs.statuses import ACTIVE_STATUSES, ClusterStatus, JobStatus, StopReason
from monarch_client.crash_points import reach

log = logging.getLogger(__name__)
_STOPPABLE = ACTIVE_STATUSES - {JobStatus.STOPPING, JobStatus.RECOVERING}


def preempt(job: Job, victims: Iterable[int], *, planned_by: int) -> None:
    """Ask `victims` to give their machines to `job`, which waits; each is a transaction of its own.

    `planned_by` is the number of the pass that chose them. StaleJobError when there was another
    pass since. One that has ended or moved meanwhile is left alone: the next pass sees what is
    free then.
    """
    for number in victims:
        try:
            with transaction.atomic():
                require_newest(planned_by)
                _require_waiting(job)
                _stop_for(job, number)
                _let_first(job)
        except _MovedError:
            log.info("victim moved meanwhile", extra={"action": "preempt_stale", "job": number})
        reach("preempt.stopped")


def evict(job: Job, names: Iterable[str], *, planned_by: int) -> None:
    """End the idle clusters of these names, whose machines `job` needs.

    As their policy says, they are stopped or terminated. StaleJobError as for `preempt`; a cluster
    that a job has taken meanwhile is left alone.
    """
    for name in names:
        with transaction.atomic():
            require_newest(planned_by)
            _require_waiting(job)
            _evict(job, name)


def _require_waiting(job: Job) -> None:
    """Raise StaleJobError if the preempting job was cancelled or held meanwhile."""
    if not Job.objects.in_status(JobStatus.QUEUED).filter(pk=job.pk, held=False).exists():
        raise StaleJobError(job=job.pk)


def _let_first(job: Job) -> None:
    """Put the job before its victims and before smaller shares until it starts.

    Call it in the transaction of the preemption, so that no job is first without a victim.
    """
    waiting = Job.objects.in_status(JobStatus.QUEUED).filter(pk=job.pk, held=False)
    if not waiting.update(has_claim=True):
        raise StaleJobError(job=job.pk)


class _MovedError(Exception):
    """The victim is not what the plan took it for."""


def _stop_for(job: Job, number: int) -> None:
    victim = Job.objects.in_status(*_STOPPABLE).select_related("project").filter(pk=number).first()
    attempt = Attempt.objects.open().filter(job=number).first()
    if victim is None or attempt is None:
        raise _MovedError
    message = f"Preempted by {_shown(job, victim.project_id)}."
    try:
        move(
            victim,
            JobStatus.STOPPING,
            reason=StopReason.PREEMPTED,
            message=message,
            attempt=attempt,
            hint="",
            preempted_by=job,
        )
    except StaleJobError as error:
        raise _MovedError from error
    nodes = "1 node" if victim.num_nodes == 1 else f"{victim.num_nodes} nodes"
    whose = _shown(victim, job.project_id)
    message = f"Waits for {nodes} of {whose}, which is being stopped for it."
    record_note(job, message, verb="preempt")
    wake_on_commit("stopping", number)


def _evict(job: Job, name: str) -> None:
    # Starting a job on it locks it, and clears its idle_since.
    idle = Cluster.objects.waiting().filter(name=name, status=ClusterStatus.UP)
    cluster = idle.select_for_update(no_key=True).first()
    if cluster is None:
        log.info("cluster taken meanwhile", extra={"action": "evict_stale", "cluster": name})
        return
    if IdlePolicy.from_dict(cluster.idle_policy).then == "stop":
        begin_switching_off(cluster.pk)
        wake_on_commit("autostop", cluster.pk)
        ended = "stopped"
    else:
        take_down(cluster.pk)
        ended = "terminated"
    last = cluster.attempts.select_related("job").order_by("-pk").first()
    if last is not None:
        whose = _shown(job, last.job.project_id)
        message = f"Warm cluster {name} is {ended}: {whose} needs its machines."
        record_note(last.job, message, last, verb="cluster_ended")


def _shown(job: Job, project_id: int) -> str:
    """Return `job` as all members of that project may read of it."""
    return job_words(job.pk if job.project_id == project_id else None)
