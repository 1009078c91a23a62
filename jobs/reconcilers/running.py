"""Follow started attempts: apply reports, enforce time limits, find silent runners."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q

from jobs.actions.attempts.end_attempt import finish_attempt
from jobs.background.exclusive import LockSpace, exclusive
from jobs.background.hints import wake_later
from jobs.errors import StaleJobError
from jobs.ground import clock
from jobs.ground.outages import is_database_away
from jobs.lifecycle import move
from jobs.models import Attempt, Job
from jobs.reconcilers.gpu_idle import may_be_idle, watch_gpus
from jobs.reconcilers.log_policies import catch_up, has_unseen_lines
from jobs.reconcilers.silence import SILENT_AFTER, look_for_runners
from jobs.reconcilers.unattended import unattended, watch_programs
from jobs.reconcilers.walltime import timed_out, watch_time
from jobs.statuses import JobStatus, StopReason
from monarch_client.crash_points import reach

log = logging.getLogger(__name__)

# How long a verdict waits for the search of the last lines.
LONGEST_LOOK = timedelta(seconds=60)
FOLLOWED = (JobStatus.SETTING_UP, JobStatus.RUNNING)
# The fields of an attempt that frames change.
TOLD_BY_RUNNERS = (
    "contacted_at",
    "run_started_at",
    "last_seen_at",
    "ended_at",
    "stop_reason",
    "message",
    "hint",
    "exit_code",
    "crash",
    "carrier",
    "diagnosis",
)


def due() -> list[int]:
    """Return jobs whose attempt ended, began, is late, silent or idle."""
    silent_since = clock.now() - SILENT_AFTER
    attempts = Attempt.objects.filter(job__status__in=FOLLOWED)
    # Earlier attempts were handled before the current one began.
    goes_on = Exists(Attempt.objects.open().filter(job=OuterRef("job")))
    changed = Q(~goes_on, ended_at__isnull=False) | Q(
        run_started_at__isnull=False, job__status=JobStatus.SETTING_UP
    )
    silent = Q(last_seen_at__lt=silent_since) | Q(last_seen_at=None, created_at__lt=silent_since)
    starting = Q(job__status=JobStatus.SETTING_UP, created_at__lt=silent_since)
    due = attempts.filter(changed | silent | starting | Q(may_be_idle()))
    found = timed_out(attempts.open()) | unattended(attempts.open())
    return sorted(found.union(due.values_list("job_id", flat=True)))


def step(job_id: int) -> None:
    """Update the status of one job from its attempt. Safe to repeat."""
    with exclusive(LockSpace.JOB, job_id) as alone:
        if not alone:
            wake_later("running", job_id, delay_s=0.2)
            return
        look_at(job_id)


def look_at(job_id: int) -> None:
    """Update the status of one job; the caller holds its lock."""
    attempt = Attempt.objects.newest_of(job_id, *FOLLOWED)
    if attempt is not None:
        _follow_if_possible(attempt)


def go_on_with(attempt: Attempt) -> None:
    """Update the status after a move by the caller, which read the attempt before."""
    attempt.refresh_from_db(fields=TOLD_BY_RUNNERS)
    _follow_if_possible(attempt)


def _follow_if_possible(attempt: Attempt) -> None:
    # A user may cancel it just now; then STOPPING continues.
    with suppress(StaleJobError):
        _follow(attempt)


def _follow(attempt: Attempt) -> None:
    """Move the job on by what its attempt has reported, and enforce the job's limits."""
    job = attempt.job
    if attempt.ended_at is None:
        # It ends the attempt, this very object, when its runners are lost.
        look_for_runners(job, attempt)
    # A job that succeeded has run, even if the report of its begin was lost.
    has_run = attempt.run_started_at is not None or attempt.stop_reason == StopReason.COMPLETED
    if has_run and job.status == JobStatus.SETTING_UP:
        move(job, JobStatus.RUNNING, attempt=attempt)
    if attempt.ended_at is not None:
        reach("verdict.known")
        if _pass_log_policies(job, attempt):
            finish_attempt(job, attempt)
    else:
        watch_time(job, attempt)
        watch_gpus(job, attempt)
        watch_programs(job, attempt)


def _pass_log_policies(job: Job, attempt: Attempt) -> bool:
    """Search the lines that log policies have not seen; whether that ends without a stop.

    Only then the verdict applies: the result must not depend on whether the program ended before
    the search.
    """
    try:
        if not has_unseen_lines(attempt.pk):
            return True
        catch_up(attempt.pk)
    except Exception as error:
        if isinstance(error, StaleJobError) or is_database_away(error):
            raise
        # Such as a damaged file. No error may hold machines forever.
        log.warning("not looked through: %s", error, extra={"action": "log_policies"})
        wake_later("running", job.pk, delay_s=0.2)
        # Without a free process or the lines, the verdict does not wait forever.
        return clock.now() - (attempt.ended_at or clock.now()) > LONGEST_LOOK
    job.refresh_from_db(fields=["status"])
    return job.status in FOLLOWED
