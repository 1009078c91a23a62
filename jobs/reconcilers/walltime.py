"""Jobs that may run for so long only: told in time, then stopped."""

from __future__ import annotations

from django.db.models import Q

from jobs import clock
from jobs.actions.history import record_note
from jobs.lifecycle import move
from jobs.limits import duration_limit, walltime_of
from jobs.models import Attempt, Job
from jobs.policies.limits import should_warn, shown_s
from jobs.statuses import JobStatus, StopReason
from jobs.wakeups import wake_on_commit

WARNED = "walltime"


def watch_time(job: Job, attempt: Attempt) -> None:
    """Stop a job whose attempt has run for as long as it may; a while before, say so once.

    StaleJobError when it was moved meanwhile. What comes before `run` does not count.
    """
    walltime = walltime_of(job)
    if walltime is None or attempt.run_started_at is None:
        return
    ran_s = (clock.now() - attempt.run_started_at).total_seconds()
    if ran_s > walltime:
        _stop(job, attempt, walltime)
    elif should_warn(ran_s, walltime) and not _is_warned(job, attempt):
        left = shown_s(walltime - ran_s)
        message = f"Stops in {left}: it may run for {shown_s(walltime)}. It can be extended."
        record_note(job, message, attempt, verb=WARNED)


def _is_warned(job: Job, attempt: Attempt) -> bool:
    """Whether it was told since the time was last extended."""
    told = Q(verb=WARNED, attempt=attempt) | Q(verb="extend")
    last = job.events.filter(told).order_by("-pk").first()
    return last is not None and last.verb == WARNED


def _stop(job: Job, attempt: Attempt, walltime: int) -> None:
    limit = duration_limit(job.project)
    asked_s = job.spec.get("portal", {}).get("max_duration")
    message = f"Ran longer than its max_duration of {shown_s(walltime)}."
    hint = "Raise portal.max_duration, or make the job save and resume its work."
    if limit is not None and (asked_s is None or asked_s + job.extended_s > limit.value):
        message = f"Ran longer than {shown_s(walltime)}, the limit of {limit.set_by}."
        hint = "Make the job save and resume its work; only an administrator raises the limit."
    move(
        job,
        JobStatus.STOPPING,
        reason=StopReason.TIMEOUT,
        message=message,
        attempt=attempt,
        hint=hint,
    )
    wake_on_commit("stopping", job.pk)
