"""Ending an attempt, and what follows for its job and its cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from django.db import transaction

from jobs.actions.attempts.charge_use import charge_use
from jobs.actions.attempts.diagnose_attempt import diagnose_attempt
from jobs.actions.attempts.report_lost_lines import report_lost_lines
from jobs.actions.attempts.store_stacks import end_stacks
from jobs.actions.clusters.warm_clusters import keep_warm
from jobs.background.hints import wake_on_commit
from jobs.errors import StaleJobError
from jobs.ground import clock
from jobs.lifecycle import move
from jobs.live.channel import publish_on_commit
from jobs.logs.handed import redaction_of
from jobs.models import Attempt, Cluster, Job, LogHead, LogWatch, Worker
from jobs.policies.endings import Next, RetryPolicy, after, retry_delay_s
from jobs.statuses import (
    PURPOSES,
    RECOVERABLE_REASONS,
    JobStatus,
    StopReason,
    WaitReason,
    WorkerStatus,
)
from monarch_client.crash_points import reach


def close_attempt(
    attempt: Attempt, reason: StopReason, message: str, hint: str = "", *, evidence: str = ""
) -> bool:
    """Give `attempt` a verdict of the portal's, unless it has one; whether it was given.

    `evidence` is what else is known of it, for a diagnosis; it is not kept here.
    """
    message, evidence = map(redaction_of(attempt).excerpt, (message, evidence))
    with transaction.atomic():
        # Every change of an attempt and its log locks the log first.
        LogHead.objects.select_for_update(no_key=True).filter(pk=attempt.pk).first()
        changed = Attempt.objects.filter(pk=attempt.pk, ended_at=None).update(
            ended_at=clock.now(), stop_reason=reason, message=message, hint=hint
        )
        if changed:
            report_lost_lines(attempt, all_silent=True)
            diagnose_attempt(attempt.pk, evidence)
        lost = reason == StopReason.WORKER_LOST
        end_workers(attempt, WorkerStatus.LOST if lost else WorkerStatus.EXITED)
        end_stacks(attempt)
        publish_on_commit(attempt.job)
    attempt.refresh_from_db()
    return bool(changed)


def end_workers(attempt: Attempt, status: WorkerStatus = WorkerStatus.EXITED) -> None:
    """End the workers that have not reported their end: no worker outlives its attempt."""
    Worker.objects.filter(attempt=attempt, ended_at=None).update(
        status=status, ended_at=clock.now()
    )


@transaction.atomic
def finish_attempt(job: Job, attempt: Attempt) -> None:
    """Move `job` on after `attempt` has ended by itself: done, tried again, or failed.

    StaleJobError when the job was moved meanwhile; then nothing is changed.
    """
    reason = StopReason(attempt.stop_reason)
    transaction.on_commit(lambda: reach("verdict.taken"))
    release_cluster(attempt)
    repeated = attempt.repeats()
    follow_up = after(
        reason,
        failures=job.failure_count,
        recoveries=job.recovery_count,
        policy=_retry_policy(job, attempt),
        is_repeated=repeated is not None,
    )
    if follow_up is Next.FINISH:
        why = f" Attempt {repeated} ended the same way: no further try." if repeated else ""
        move(
            job,
            reason.final_status,
            reason=reason,
            message=f"{attempt.message}{why}",
            attempt=attempt,
            hint=attempt.hint,
            exit_code=attempt.exit_code,
        )
    else:
        _try_again(job, attempt, follow_up)
    charge_use(job, attempt)
    # No job needs its machines now or soon.
    wake_on_commit("queue")


@transaction.atomic
def finish_stopping(job: Job, attempt: Attempt) -> None:
    """End a STOPPING job as its reason says, once nothing of `attempt` runs any more."""
    reason = StopReason(job.stop_reason)
    # A runner that was ordered to stop does not know why; the job does. Other verdicts stay.
    cancelled = Attempt.objects.filter(pk=attempt.pk, stop_reason=StopReason.CANCELLED_BY_USER)
    cancelled.update(stop_reason=reason, message=job.message)
    release_cluster(attempt)
    # Canceling a job that is being preempted changes its reason alone.
    same = Job.objects.filter(pk=job.pk, stop_reason=job.stop_reason)
    if not same.select_for_update(no_key=True).exists():
        raise StaleJobError(job=job.pk)
    if reason == StopReason.PREEMPTED and not job.request.serves_parent:
        attempt.refresh_from_db(fields=["stop_reason", "message"])
        _give_way(job, attempt)
    else:
        # Without a driver of its own, a preempted job has nothing to start again for.
        is_final = reason.final_status.is_final
        final = reason.final_status if is_final else JobStatus.CANCELLED
        move(job, final, reason=reason, attempt=attempt, exit_code=attempt.exit_code)
    charge_use(job, attempt)
    wake_on_commit("queue")


def _give_way(job: Job, attempt: Attempt) -> None:
    """Queue a preempted job again, unless its program came to its own end first."""
    own = StopReason(attempt.stop_reason)
    # Machines that were lost on the way are those that it was to give back.
    if own in PURPOSES or own in RECOVERABLE_REASONS:
        move(
            job,
            JobStatus.QUEUED,
            reason=StopReason.PREEMPTED,
            message=job.message,
            attempt=attempt,
            wait_reason=WaitReason.PREEMPTED,
            hint="",
        )
        transaction.on_commit(lambda: reach("preempt.queued"))
        return
    retries = after(
        own,
        failures=job.failure_count,
        recoveries=job.recovery_count,
        policy=_retry_policy(job, attempt),
    )
    is_over = retries is Next.FINISH
    move(
        job,
        own.final_status if is_over else JobStatus.QUEUED,
        reason=own,
        message=attempt.message,
        attempt=attempt,
        hint=attempt.hint,
        exit_code=attempt.exit_code if is_over else None,
        failure_count=job.failure_count + (retries is Next.RETRY),
    )


def release_cluster(attempt: Attempt) -> None:
    """Keep the attempt's cluster, or request its termination: only this function decides that.

    Call it in a transaction, with the attempt's verdict. A second call changes nothing.
    """
    if attempt.cluster_id is not None and not keep_warm(attempt):
        take_down(attempt.cluster_id)


def take_down(cluster_id: int) -> None:
    """Request the termination of a cluster; a second request changes nothing."""
    Cluster.objects.filter(pk=cluster_id, release_requested_at=None).update(
        release_requested_at=clock.now()
    )
    wake_on_commit("teardown", cluster_id)


def _try_again(job: Job, attempt: Attempt, follow_up: Next) -> None:
    failures = job.failure_count + (follow_up is Next.RETRY)
    recoveries = job.recovery_count + (follow_up is Next.RECOVER)
    delay_s = retry_delay_s(failures + recoveries)
    move(
        job,
        JobStatus.RECOVERING,
        reason=StopReason(attempt.stop_reason),
        message=attempt.message,
        attempt=attempt,
        hint=attempt.hint,
        failure_count=failures,
        recovery_count=recoveries,
        next_try_at=clock.now() + timedelta(seconds=delay_s),
    )
    wake_on_commit("recovering", job.pk)
    # Those that serve the driver of this attempt end with it.
    wake_on_commit("children")


def _retry_policy(job: Job, attempt: Attempt) -> RetryPolicy:
    # A line may have said that the same would happen again; a lost machine is another matter.
    lost_hope = LogWatch.objects.filter(attempt=attempt).exclude(no_retry_by="")
    # A success needs no explanation.
    is_hopeless = attempt.stop_reason != StopReason.COMPLETED and lost_hope.exists()
    retry = job.request.retry
    return replace(retry, max_attempts=1) if is_hopeless else retry
