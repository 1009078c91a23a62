"""Starts queued jobs as the plan says. `pace` says how soon a pass may follow another."""

from __future__ import annotations

import logging
import time

from django.db import transaction
from django.db.models import Q, QuerySet, Sum

from jobs import clock
from jobs.actions.kept_clusters import kept_clusters, wish_of
from jobs.actions.start_attempt import start_attempt
from jobs.backends import registry
from jobs.disk_space import shortage
from jobs.errors import BackendError, StaleJobError
from jobs.lifecycle import move
from jobs.live.channel import publish_on_commit
from jobs.models import Cluster, Job
from jobs.reconcilers import pace
from jobs.reconcilers.exclusive import LockSpace, exclusive
from jobs.scheduling.plan import plan
from jobs.scheduling.snapshot import Capacity, Decision, QueuedJob, Refuse, Snapshot, Start, Wait
from jobs.statuses import ClusterStatus, JobStatus, StopReason, WaitReason
from jobs.wakeups import wake
from monarch_client.runner.crash_points import reach

log = logging.getLogger(__name__)

_WOULD_SHARE = Q(spec__portal__has_key="reuse") | Q(spec__portal__has_key="cluster")


def step() -> None:
    """Plan once and carry it out, unless the last pass was only just made: then a little later."""
    if not Job.objects.startable(clock.now()).exists():
        return
    with exclusive(LockSpace.QUEUE) as alone:
        wait_s = pace.resting_s() if alone else pace.LONGEST_REST_S
        if wait_s > 0:
            _come_back(wait_s)
            return
        begin = time.monotonic()
        run_pass()
        pace.rest_after(time.monotonic() - begin)


def _come_back(wait_s: float) -> None:
    """However many hints come during a rest, one pass follows it."""
    if pace.first_to_ask(wait_s):
        wake("queue", delay_s=wait_s)


def run_pass() -> None:
    """Load, plan, act. Each decision is a transaction of its own, guarded by the job's status."""
    decisions = plan(load_snapshot())
    reach("plan.decided")
    for decision in decisions:
        _carry_out(decision)


def load_snapshot() -> Snapshot:
    """The queue and the room as the database has them now."""
    rows = Job.objects.startable(clock.now()).order_by("pk")
    wishes = {job.pk: wish_of(job) for job in rows.filter(_WOULD_SHARE)}
    queued = tuple(
        QueuedJob(pk, backend, nodes, priority, wishes.get(pk))
        for pk, backend, nodes, priority in rows.values_list(
            "pk", "backend_name", "num_nodes", "priority"
        )
    )
    # Machines that are switched off take no room.
    there = Cluster.objects.existing().exclude(status=ClusterStatus.STOPPED)
    used, idle = _nodes_of(there), _nodes_of(there.exclude(idle_since=None))
    capacity = {
        name: _capacity_of(name, used.get(name, 0), idle.get(name, 0))
        for name in {job.backend_name for job in queued}
    }
    return Snapshot(queued, capacity, tuple(kept_clusters()) if wishes else ())


def _nodes_of(clusters: QuerySet[Cluster]) -> dict[str, int]:
    counted = clusters.values("backend_name").annotate(nodes=Sum("num_nodes"))
    return dict(counted.values_list("backend_name", "nodes"))


def _capacity_of(backend_name: str, used: int, kept: int) -> Capacity:
    if why := shortage():
        return Capacity(0, used, problem=why)
    try:
        return Capacity(registry.get(backend_name).capacity_nodes(), used, kept)
    except BackendError as error:
        # Its jobs wait; those of other backends go on.
        return Capacity(0, used, problem=error.message)


def _carry_out(decision: Decision) -> None:
    queued = Job.objects.in_status(JobStatus.QUEUED).select_related("project")
    job = queued.filter(pk=decision.job_id, held=False).first()
    if job is None:
        return
    try:
        _act(job, decision)
    except StaleJobError:
        log.info("job moved meanwhile", extra={"action": "plan_stale", "job": job.pk})
    except Exception:
        # One job's failure must not keep those behind it from their turn.
        log.exception("not carried out", extra={"action": "plan_failed", "job": job.pk})


def _act(job: Job, decision: Decision) -> None:
    match decision:
        case Start():
            start_attempt(job)
        case Refuse(message=message):
            move(job, JobStatus.FAILED, reason=StopReason.NO_CAPACITY, message=message)
        case Wait(message=message):
            _say_why(job, message)


def _say_why(job: Job, message: str) -> None:
    if (job.wait_reason, job.message) == (WaitReason.CAPACITY, message):
        return
    with transaction.atomic():
        queued = Job.objects.in_status(JobStatus.QUEUED).filter(pk=job.pk, held=False)
        queued.update(wait_reason=WaitReason.CAPACITY, message=message)
        publish_on_commit(job)
