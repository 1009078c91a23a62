"""Follows attempts that have machines: what was reported, how long they ran, who went silent."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q

from jobs import clock
from jobs.actions.end_attempt import finish_attempt
from jobs.errors import StaleJobError
from jobs.lifecycle import move
from jobs.models import Attempt, Job
from jobs.reconcilers.exclusive import LockSpace, exclusive
from jobs.reconcilers.pace import come_back
from jobs.reconcilers.silence import SILENT_AFTER, look_for_runners
from jobs.statuses import JobStatus, StopReason
from jobs.wakeups import wake_on_commit
from monarch_client.runner.crash_points import reach

FOLLOWED = (JobStatus.SETTING_UP, JobStatus.RUNNING)


def due() -> list[int]:
    """Jobs whose attempt has ended, has begun to run, runs or starts for long, or is silent."""
    silent_since = clock.now() - SILENT_AFTER
    attempts = Attempt.objects.filter(job__status__in=FOLLOWED)
    changed = Q(ended_at__isnull=False) | Q(
        run_started_at__isnull=False, job__status=JobStatus.SETTING_UP
    )
    silent = Q(last_seen_at__lt=silent_since) | Q(last_seen_at=None, created_at__lt=silent_since)
    starting = Q(job__status=JobStatus.SETTING_UP, created_at__lt=silent_since)
    timed = Q(job__spec__portal__has_key="max_duration")
    newest = attempts.filter(changed | silent | starting | timed)
    return sorted(set(newest.values_list("job_id", flat=True)))


def step(job_id: int) -> None:
    """Bring one job's status up to what is known of its attempt. Safe to repeat."""
    with exclusive(LockSpace.JOB, job_id) as alone:
        if not alone:
            come_back("running", job_id, delay_s=0.2)
            return
        job = Job.objects.in_status(*FOLLOWED).filter(pk=job_id).first()
        if job is None:
            return
        try:
            _follow(job)
        except StaleJobError:
            # Somebody cancelled it just now; STOPPING goes on from here.
            return


def _follow(job: Job) -> None:
    attempt = job.attempts.select_related("cluster").order_by("-number")[0]
    if attempt.ended_at is None:
        look_for_runners(job, attempt)
    # A success has run, even if the word of its beginning was lost.
    has_run = attempt.run_started_at is not None or attempt.stop_reason == StopReason.COMPLETED
    if has_run and job.status == JobStatus.SETTING_UP:
        move(job, JobStatus.RUNNING, attempt=attempt)
    if attempt.ended_at is not None:
        reach("verdict.known")
        _take_verdict(job, attempt)
    elif (limit_s := _overrun(job, attempt)) is not None:
        _stop_for_time(job, attempt, limit_s)


def _take_verdict(job: Job, attempt: Attempt) -> None:
    if attempt.stop_reason == StopReason.CANCELLED_BY_USER:
        # Nobody here asked for it: the machine was told to stop by somebody else.
        Attempt.objects.filter(pk=attempt.pk).update(
            stop_reason=StopReason.WORKER_LOST,
            message="The runner was told to stop from outside the portal.",
        )
        attempt.refresh_from_db()
    finish_attempt(job, attempt)


def _overrun(job: Job, attempt: Attempt) -> int | None:
    """The limit in seconds, if the attempt has run longer than that."""
    limit_s = job.spec.get("portal", {}).get("max_duration")
    if limit_s is None or attempt.run_started_at is None:
        return None
    ran_s = (clock.now() - attempt.run_started_at).total_seconds()
    return limit_s if ran_s > limit_s else None


def _stop_for_time(job: Job, attempt: Attempt, limit_s: int) -> None:
    move(
        job,
        JobStatus.STOPPING,
        reason=StopReason.TIMEOUT,
        message=f"Ran longer than its max_duration of {timedelta(seconds=limit_s)}.",
        attempt=attempt,
        hint="Raise portal.max_duration, or make the job save and resume its work.",
    )
    wake_on_commit("stopping", job.pk)
