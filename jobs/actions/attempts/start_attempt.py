"""Starting a new attempt of a job: its rows, and the move to PROVISIONING."""

from __future__ import annotations

import secrets
from collections.abc import Collection

from django.db import transaction
from django.db.models import Max

from jobs.actions.clusters.warm_clusters import (
    idle_policy_of,
    take_any_cluster,
    take_cluster,
)
from jobs.attempt_tokens import attempt_token_digest
from jobs.background.hints import wake_on_commit
from jobs.errors import StaleJobError
from jobs.ground import clock
from jobs.lifecycle import move, start_together
from jobs.models import Attempt, AttemptStage, Cluster, Installation, Job, LogHead
from jobs.queueing.pass_number import require_newest
from jobs.spending import budget_of_job, has_spent_its_budget
from jobs.statuses import JobStatus, StageName
from monarch_client.crash_points import reach


@transaction.atomic
def start_attempt(job: Job, *, planned_by: int | None = None, onto: str = "") -> Attempt:
    """Make the next attempt of `job`, not yet launched: on a warm cluster, or on a new one.

    `planned_by` is the number of the pass that found room for it: on the warm cluster `onto`, or,
    without one, for machines of its own. Without a pass it takes any warm cluster that it may.
    StaleJobError when there was another pass since, the job was moved meanwhile, its budget is
    spent, or the cluster is taken; ClusterGoneError when a named one was lost. Then nothing is
    made.
    """
    if planned_by is not None:
        require_newest(planned_by)
    if has_spent_its_budget(job, clock.now()):
        # It was queued again, or recovers; the budget reconciler ends it within seconds.
        raise StaleJobError(f"Job {job.pk} has spent its budget.")
    number = (job.attempts.aggregate(last=Max("number"))["last"] or 0) + 1
    cluster = take_cluster(job, onto) if onto else None
    if planned_by is None:
        cluster = take_any_cluster(job)
    if cluster is None:
        cluster = _new_cluster(job, number, Installation.current().key)
        cluster.save(force_insert=True)
    attempt = _new_attempt(job, number, cluster)
    attempt.save(force_insert=True)
    LogHead.objects.create(attempt=attempt)
    _launch_stage(attempt).save(force_insert=True)
    # It has the machines of its victims: if it waits again, it is in scheduling order.
    move(job, JobStatus.PROVISIONING, attempt=attempt, has_claim=False)
    _wake_provisioning(job)
    return attempt


@transaction.atomic
def start_attempts(job_ids: Collection[int], *, planned_by: int) -> list[int]:
    """Start many jobs for which one pass found room, each on machines of its own; who has started.

    A few statements for all. It leaves out those which another process has, or that are queued no
    more, and those with a budget, which takes a look at each. StaleJobError: there was
    another pass since, or a job was moved all the same; then none has started.
    """
    require_newest(planned_by)
    # Never waits for one of them while it has others.
    queued = Job.objects.in_status(JobStatus.QUEUED).filter(pk__in=job_ids, held=False)
    rows = queued.select_for_update(of=("self",), no_key=True, skip_locked=True)
    ordered = rows.select_related("project").order_by("pk")
    jobs = [job for job in ordered if budget_of_job(job) is None]
    if not jobs:
        return []
    before = Attempt.objects.filter(job__in=jobs).values_list("job").annotate(Max("number"))
    last = dict(before.order_by())
    numbers = [last.get(job.pk, 0) + 1 for job in jobs]
    key = Installation.current().key
    clusters = Cluster.objects.bulk_create(
        _new_cluster(job, number, key) for job, number in zip(jobs, numbers, strict=True)
    )
    parts = zip(jobs, numbers, clusters, strict=True)
    attempts = Attempt.objects.bulk_create([_new_attempt(*each) for each in parts])
    LogHead.objects.bulk_create(LogHead(attempt=attempt) for attempt in attempts)
    AttemptStage.objects.bulk_create(map(_launch_stage, attempts))
    start_together(attempts)
    for job in jobs:
        _wake_provisioning(job)
    return [job.pk for job in jobs]


def _wake_provisioning(job: Job) -> None:
    transaction.on_commit(lambda: reach("plan.started"))
    wake_on_commit("provisioning", job.pk)


def _new_attempt(job: Job, number: int, cluster: Cluster) -> Attempt:
    digest = attempt_token_digest(job.pk, number)
    return Attempt(job=job, number=number, cluster=cluster, token_digest=digest)


def _launch_stage(attempt: Attempt) -> AttemptStage:
    return AttemptStage(attempt=attempt, name=StageName.LAUNCH, started_at=clock.now())


def _new_cluster(job: Job, number: int, key: str) -> Cluster:
    is_reusable = job.request.reuse
    return Cluster(
        project=job.project,
        name=_new_name(job, number, key),
        backend_name=job.backend_name,
        num_nodes=job.num_nodes,
        started_by_id=job.submitted_by_id,
        queue_name=job.queue_name,
        gpu_type=job.gpu_type,
        gpu_count=job.gpu_count,
        price_key=job.price_key,
        is_reusable=is_reusable,
        fingerprint=job.fingerprint if is_reusable else "",
        idle_policy=idle_policy_of(job) if is_reusable else {},
    )


def _new_name(job: Job, number: int, key: str) -> str:
    """Return a name that was never used; the row keeps it, for a launch that is repeated.

    Without the random part a database restored from a backup would give names a second time.
    """
    return f"mp{key}-{secrets.token_hex(3)}-{job.pk}-{number}"
