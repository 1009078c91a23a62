"""The effects of a runner's reports: on stages, workers, the attempt and its verdict.

Their texts are masked already. Called inside the transaction of `ingest_frames`, under the lock of
the attempt's log, so that the reports of one attempt are applied one after another.
"""

from __future__ import annotations

from jobs.actions.attempts.diagnose_attempt import diagnose_attempt
from jobs.actions.attempts.end_attempt import end_workers
from jobs.actions.attempts.report_lost_lines import report_lost_lines
from jobs.actions.attempts.store_stacks import end_stacks, store_stacks
from jobs.actions.ingest.apply_stage_reports import apply_stage_reports, reported_at
from jobs.actions.ingest.apply_worker_reports import apply_worker_reports
from jobs.actions.jobs.history import record_note
from jobs.background.hints import wake_on_commit
from jobs.live.channel import publish_on_commit
from jobs.logs.frames import Frame
from jobs.logs.lines import storable
from jobs.models import Attempt, AttemptStage
from jobs.models.attempt import CRASH_CHARS
from jobs.statuses import EVIDENCE, JobStatus, StageName, StopReason
from monarch_client.runner.vocabulary.frames import END, EXIT, STACKS, STAGE, WORKER

_DETAIL_CHARS = 500
_MESSAGE_CHARS = 4000
_FROM_OUTSIDE = "The runner was stopped from outside the portal."
# The others are begun and ended by the portal.
_RUNNERS_STAGES = (StageName.SETUP, StageName.WORKERS, StageName.RUN)


def apply_reports(attempt: Attempt, reports: list[Frame]) -> None:
    """Apply `reports`, those of each kind in order, in a few statements whatever their number.

    The end comes last, and only the first of several counts: a verdict that was given stays.
    """
    if not reports:
        return
    apply_worker_reports(attempt, [r for r in reports if r["kind"] in {WORKER, EXIT}])
    apply_stage_reports(attempt, [r for r in reports if r["kind"] == STAGE])
    store_stacks(attempt, [r for r in reports if r["kind"] == STACKS])
    end = next((r for r in reports if r["kind"] == END), None)
    if end is not None:
        _apply_end(attempt, end)
    publish_on_commit(attempt.job)


def _apply_end(attempt: Attempt, report: Frame) -> None:
    reason, at = StopReason(report["reason"]), reported_at(attempt, report)
    message = storable(report.get("message") or "", _MESSAGE_CHARS)
    if reason == StopReason.CANCELLED_BY_USER and attempt.job.status != JobStatus.STOPPING:
        # The portal did not request it: another program stopped the machine, or its runner.
        reason, message = StopReason.WORKER_LOST, message or _FROM_OUTSIDE
    given = Attempt.objects.filter(pk=attempt.pk, ended_at=None).update(
        ended_at=at,
        stop_reason=reason,
        message=message,
        hint=storable(report.get("hint") or "", _MESSAGE_CHARS),
        exit_code=report.get("exit_code"),
        crash=storable(report.get("crash") or "", CRASH_CHARS),
    )
    if not given:
        return
    failure = "" if reason == StopReason.COMPLETED else message[:_DETAIL_CHARS] or reason.label
    AttemptStage.objects.filter(attempt=attempt, name__in=_RUNNERS_STAGES, ended_at=None).update(
        ended_at=at, failure=failure
    )
    report_lost_lines(
        attempt, all_silent=reason == StopReason.WORKER_LOST, reported_by=report["rank"]
    )
    end_workers(attempt)
    end_stacks(attempt)
    evidence = storable(report.get("evidence") or "", _MESSAGE_CHARS)
    line = diagnose_attempt(attempt.pk, evidence)
    if evidence:
        record_note(attempt.job, evidence, attempt, verb=EVIDENCE, line=line)
    wake_on_commit("running", attempt.job_id)
