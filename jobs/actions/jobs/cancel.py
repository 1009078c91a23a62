"""Cancelling a job in any status."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from jobs.actions.jobs.history import note_action, note_actions
from jobs.actions.jobs.present import read_again, refuse_ended
from jobs.audit.record import record
from jobs.background.hints import wake_on_commit
from jobs.errors import StaleJobError
from jobs.lifecycle import end_together, move
from jobs.models import Job
from jobs.permissions import Actor, require_cancel
from jobs.statuses import ACTIVE_STATUSES, JobStatus, StopReason
from monarch_client.crash_points import reach

# How often a cancel starts over because the job moved under it; a job has few moves in its life.
_TRIES = 10


def cancel_job(actor: Actor, job: Job) -> Job:
    """End `job`: at once while it is queued, through STOPPING when it has machines.

    A second cancel of a stopping job changes nothing. JobAlreadyFinalError when it has ended.
    """
    require_cancel(actor, job)
    for _ in range(_TRIES):
        read_again(job)
        try:
            return end_job(actor, job, _cancelled_by(actor))
        except StaleJobError:
            continue
    raise StaleJobError(f"Job {job.pk} keeps changing; try again.")


@transaction.atomic
def cancel_together(actor: Actor, numbers: Collection[int]) -> int:
    """Cancel many queued and active jobs in a few statements; how many there were.

    Skips jobs whose rows another transaction has locked; use `cancel_job` for them. Does not check
    permissions: the caller does.
    """
    wanted = Job.objects.in_status(JobStatus.QUEUED, *ACTIVE_STATUSES - {JobStatus.STOPPING})
    # skip_locked: waiting for one row while holding others could deadlock.
    rows = wanted.filter(pk__in=numbers).select_for_update(no_key=True, skip_locked=True)
    jobs = list(rows.defer("spec", "spec_source").order_by("pk"))
    if not jobs:
        return 0
    message = _cancelled_by(actor)
    end_together(jobs, reason=StopReason.CANCELLED_BY_USER, message=message)
    note_actions([(job, message) for job in jobs], actor, "cancel")
    transaction.on_commit(_committed)
    wake_on_commit("queue")
    for job in jobs:
        if job.status != JobStatus.QUEUED:
            wake_on_commit("stopping", job.pk)
    return len(jobs)


def end_job(actor: Actor, job: Job, message: str) -> Job:
    """End `job` once, as it was read; whether `actor` may is not asked here.

    StaleJobError: it has moved since. JobAlreadyFinalError: it has ended.
    """
    refuse_ended(job)
    if job.status == JobStatus.STOPPING:
        is_queued_again = job.stop_reason == StopReason.PREEMPTED
        return _end_for_good(actor, job, message) if is_queued_again else job
    before, was_queued = {"status": job.status}, job.status == JobStatus.QUEUED
    to = JobStatus.CANCELLED if was_queued else JobStatus.STOPPING
    with transaction.atomic():
        move(job, to, reason=StopReason.CANCELLED_BY_USER, message=message, hint="")
        record(actor, "cancel", job, before=before, after={"status": to})
        note_action(job, actor, "cancel", message)
        transaction.on_commit(_committed)
        if was_queued:
            wake_on_commit("queue")  # it no longer blocks other jobs
        else:
            wake_on_commit("stopping", job.pk)
    return job


def _end_for_good(actor: Actor, job: Job, message: str) -> Job:
    """Make sure that a job which is being preempted is not queued again."""
    changes = {
        "stop_reason": StopReason.CANCELLED_BY_USER,
        "message": message,
        "preempted_by": None,
    }
    stopping = Job.objects.in_status(JobStatus.STOPPING).filter(stop_reason=StopReason.PREEMPTED)
    with transaction.atomic():
        if not stopping.filter(pk=job.pk).update(**changes):
            raise StaleJobError(job=job.pk)
        reasons = {"reason": StopReason.PREEMPTED}, {"reason": StopReason.CANCELLED_BY_USER}
        record(actor, "cancel", job, before=reasons[0], after=reasons[1])
        note_action(job, actor, "cancel", message)
    for name, value in changes.items():
        setattr(job, name, value)
    return job


def _committed() -> None:
    reach("cancel.committed")


def _cancelled_by(actor: Actor) -> str:
    who = f"job {actor.driver.job_id}" if actor.driver else actor.user.get_username()
    return f"Cancelled by {who}."
