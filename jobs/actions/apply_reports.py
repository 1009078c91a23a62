"""What a runner's reports change: stages, workers, the attempt and its verdict.

Called inside the transaction of `jobs.actions.ingest_frames`, under the lock of the attempt's log,
so that the reports of one attempt are applied one after another.
"""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from jobs.actions.apply_worker_reports import apply_worker_reports
from jobs.actions.end_attempt import end_workers
from jobs.actions.history import record_note
from jobs.live.channel import publish_on_commit
from jobs.logs.frames import Frame
from jobs.logs.lines import moment_of, storable
from jobs.logs.redaction import redacted
from jobs.models import Attempt, AttemptStage
from jobs.statuses import EVIDENCE, StageName, StopReason
from jobs.wakeups import wake_on_commit

_DETAIL_CHARS = 500
_MESSAGE_CHARS = 4000
# The others are begun and ended by the portal.
_RUNNERS_STAGES = (StageName.SETUP, StageName.WORKERS, StageName.RUN)


def apply_reports(attempt: Attempt, reports: list[Frame]) -> None:
    """Apply `reports` in order. A verdict that was given before stays as it is."""
    if not reports:
        return
    apply_worker_reports(attempt, [r for r in reports if r["kind"] in {"worker", "exit"}])
    for report in reports:
        if report["kind"] == "stage":
            _apply_stage(attempt, report)
        elif report["kind"] == "end":
            _apply_end(attempt, report)
    publish_on_commit(attempt.job)


def reported_at(attempt: Attempt, report: Frame) -> datetime:
    """The time of a report by the node's clock, held to what is possible by the portal's."""
    told = moment_of(int(report["t"] * 1000))
    return min(max(told, attempt.created_at), timezone.now())


def _apply_stage(attempt: Attempt, report: Frame) -> None:
    name, at = report["stage"], reported_at(attempt, report)
    detail = storable(report.get("detail") or "", _DETAIL_CHARS)
    stage, _ = AttemptStage.objects.get_or_create(
        attempt=attempt, name=name, defaults={"started_at": at, "detail": detail}
    )
    if report["phase"] == "begin":
        if name == StageName.RUN:
            _note_run(attempt, at)
    elif stage.ended_at is None:
        stage.ended_at = at
        if report.get("ok", True):
            stage.detail = detail or stage.detail
        else:
            stage.failure = detail or "failed"
        stage.save()


def _note_run(attempt: Attempt, at: datetime) -> None:
    attempts = Attempt.objects.filter(pk=attempt.pk, run_started_at=None)
    if attempts.update(run_started_at=at):
        wake_on_commit("running", attempt.job_id)


def _apply_end(attempt: Attempt, report: Frame) -> None:
    reason, at = StopReason(report["reason"]), reported_at(attempt, report)
    message = storable(report.get("message") or "", _MESSAGE_CHARS)
    given = Attempt.objects.filter(pk=attempt.pk, ended_at=None).update(
        ended_at=at,
        stop_reason=reason,
        message=message,
        hint=storable(report.get("hint") or "", _MESSAGE_CHARS),
        exit_code=report.get("exit_code"),
    )
    if not given:
        return
    failure = "" if reason == StopReason.COMPLETED else message[:_DETAIL_CHARS] or reason.label
    AttemptStage.objects.filter(attempt=attempt, name__in=_RUNNERS_STAGES, ended_at=None).update(
        ended_at=at, failure=failure
    )
    end_workers(attempt)
    if evidence := storable(redacted(report.get("evidence") or ""), _MESSAGE_CHARS):
        record_note(attempt.job, evidence, attempt, verb=EVIDENCE)
    wake_on_commit("running", attempt.job_id)
