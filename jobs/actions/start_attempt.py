"""Starting a new attempt of a job: its rows, and the move to PROVISIONING."""

from __future__ import annotations

import secrets

from django.db import transaction
from django.db.models import Max

from jobs import clock
from jobs.actions.kept_clusters import idle_policy_of, take_cluster
from jobs.actions.plan_pass import require_newest
from jobs.attempt_tokens import attempt_token_digest
from jobs.errors import StaleJobError
from jobs.lifecycle import move
from jobs.models import Attempt, AttemptStage, Cluster, Installation, Job, LogHead
from jobs.spending import has_spent_its_budget
from jobs.statuses import JobStatus, StageName
from jobs.wakeups import wake_on_commit
from monarch_client.runner.crash_points import reach


@transaction.atomic
def start_attempt(job: Job, *, planned_by: int | None = None, onto_kept: bool = False) -> Attempt:
    """The next attempt of `job`, not yet launched: on a cluster that was kept, or on a new one.

    `planned_by` is the number of the pass that found room for it; `onto_kept` that it did so on a
    kept cluster, and that there may be none for machines of its own. StaleJobError when there was
    another pass since, the job was moved meanwhile, its budget is spent, or the cluster is taken;
    ClusterGoneError when one that it names is gone. Then nothing is made.
    """
    if planned_by is not None:
        require_newest(planned_by)
    if has_spent_its_budget(job, clock.now()):
        # It was queued again, or recovers; whoever looks after budgets ends it within seconds.
        raise StaleJobError(f"Job {job.pk} has spent its budget.")
    number = (job.attempts.aggregate(last=Max("number"))["last"] or 0) + 1
    cluster = take_cluster(job)
    if cluster is None and onto_kept:
        raise StaleJobError("The kept cluster that it was to take is not free any more.")
    cluster = cluster or _new_cluster(job, number)
    attempt = Attempt.objects.create(
        job=job,
        number=number,
        cluster=cluster,
        token_digest=attempt_token_digest(job.pk, number),
    )
    LogHead.objects.create(attempt=attempt)
    AttemptStage.objects.create(attempt=attempt, name=StageName.LAUNCH, started_at=clock.now())
    # It has got what others were stopped for: should it wait again, it comes in its turn.
    move(job, JobStatus.PROVISIONING, attempt=attempt, is_owed=False)
    transaction.on_commit(lambda: reach("plan.started"))
    wake_on_commit("provisioning", job.pk)
    return attempt


def _new_cluster(job: Job, number: int) -> Cluster:
    is_reusable = bool(job.spec.get("portal", {}).get("reuse"))
    return Cluster.objects.create(
        project=job.project,
        name=_new_name(job, number),
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


def _new_name(job: Job, number: int) -> str:
    """Never used before, and kept in the row: a launch that is repeated uses it again.

    Without the random part a database restored from a backup would give names a second time.
    """
    return f"mp{Installation.current().key}-{secrets.token_hex(3)}-{job.pk}-{number}"
