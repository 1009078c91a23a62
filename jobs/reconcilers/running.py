"""Follows attempts that have machines: what was reported, how long they ran, who went silent."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from jobs.actions.end_attempt import close_attempt, finish_attempt
from jobs.actions.history import record_note
from jobs.actions.leftovers import ingest_leftovers
from jobs.backends import registry
from jobs.backends.base import ClusterPhase, ClusterView, NodeView
from jobs.errors import StaleJobError
from jobs.lifecycle import move
from jobs.logs.lines import storable
from jobs.models import Attempt, Job
from jobs.reconcilers.exclusive import LockSpace, exclusive
from jobs.reconcilers.pace import come_back
from jobs.statuses import EVIDENCE, JobStatus, StopReason
from jobs.wakeups import wake_on_commit

FOLLOWED = (JobStatus.SETTING_UP, JobStatus.RUNNING)
# A runner sends something at least every 5 seconds.
SILENT_AFTER = timedelta(seconds=12)
_EVIDENCE_CHARS = 4000


def due() -> list[int]:
    """Jobs whose attempt has ended, has begun to run, has run too long, or has gone silent."""
    silent_since = timezone.now() - SILENT_AFTER
    attempts = Attempt.objects.filter(job__status__in=FOLLOWED)
    changed = Q(ended_at__isnull=False) | Q(
        run_started_at__isnull=False, job__status=JobStatus.SETTING_UP
    )
    silent = Q(last_seen_at__lt=silent_since) | Q(last_seen_at=None, created_at__lt=silent_since)
    timed = Q(job__spec__portal__has_key="max_duration")
    newest = attempts.filter(changed | silent | timed)
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
    if attempt.ended_at is None and _is_silent(attempt):
        _look_for_runner(job, attempt)
    # A success has run, even if the word of its beginning was lost.
    has_run = attempt.run_started_at is not None or attempt.stop_reason == StopReason.COMPLETED
    if has_run and job.status == JobStatus.SETTING_UP:
        move(job, JobStatus.RUNNING, attempt=attempt)
    if attempt.ended_at is not None:
        _take_verdict(job, attempt)
    elif (limit_s := _overrun(job, attempt)) is not None:
        _stop_for_time(job, attempt, limit_s)


def _is_silent(attempt: Attempt) -> bool:
    last = attempt.last_seen_at or attempt.created_at
    return last < timezone.now() - SILENT_AFTER


def _look_for_runner(job: Job, attempt: Attempt) -> None:
    """A silent carrier proves nothing; a backend that sees the head's runner dead does."""
    assert attempt.cluster is not None  # noqa: S101 - start_attempt makes them together
    backend = registry.get(job.backend_name)
    view = backend.observe(attempt.cluster.name)
    if _head_lives(view):
        return
    ingest_leftovers(attempt, backend)
    attempt.refresh_from_db()
    if attempt.ended_at is None:
        _end_without_a_word(job, attempt, _dead_head(view))


def _head_lives(view: ClusterView) -> bool:
    """Whether rank 0, through which everything is reported, has a runner."""
    if view.phase in {ClusterPhase.ENDED, ClusterPhase.GONE}:
        return False
    return _dead_head(view) is None


def _dead_head(view: ClusterView) -> NodeView | None:
    """Rank 0's machine, if it is there and its runner is not."""
    return next((node for node in view.nodes if node.rank == 0 and not node.alive), None)


@transaction.atomic
def _end_without_a_word(job: Job, attempt: Attempt, head: NodeView | None) -> None:
    """Close the attempt; what its runner printed outside the log is kept as evidence."""
    if head is not None and attempt.contacted_at is None:
        # It would die again at the next attempt, and the one after.
        reason = StopReason.BACKEND
        message = f"The runner of attempt {attempt.number} died at its start, without a word."
        hint = "What it printed says why; most often the node's Python cannot start."
    else:
        reason = StopReason.WORKER_LOST
        message = f"The first host of attempt {attempt.number} is gone without a word."
        hint = "The machine was restarted or the runner was killed; see the last lines of the log."
    given = close_attempt(attempt, reason, message, hint)
    printed = storable(head.detail, _EVIDENCE_CHARS) if head else ""
    if given and printed:
        record_note(job, printed, attempt, verb=EVIDENCE)


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
    ran_s = (timezone.now() - attempt.run_started_at).total_seconds()
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
