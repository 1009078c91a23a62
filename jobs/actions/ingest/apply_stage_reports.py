"""The reported stages of an attempt: one row per stage, begun once, ended once."""

from __future__ import annotations

from datetime import datetime

from jobs.background.hints import wake_on_commit
from jobs.ground import clock
from jobs.logs.frames import Frame
from jobs.logs.lines import moment_of, storable
from jobs.models import Attempt, AttemptStage
from jobs.statuses import StageName
from monarch_client.runner.vocabulary.stages import BEGIN, END

_DETAIL_CHARS = 500


def apply_stage_reports(attempt: Attempt, reports: list[Frame]) -> None:
    """Apply `reports` (kind stage) in order, in a few statements whatever their number."""
    names = {report["stage"] for report in reports}
    known = AttemptStage.objects.filter(attempt=attempt, name__in=names) if names else ()
    stages = {stage.name: stage for stage in known}
    begun: list[AttemptStage] = []
    ended: list[AttemptStage] = []
    for report in reports:
        stage = stages.get(report["stage"])
        if stage is None:
            stage = stages[report["stage"]] = _begun(attempt, report)
            begun.append(stage)
        if report["phase"] == END and stage.ended_at is None:
            _end(stage, attempt, report)
            ended.append(stage)
    AttemptStage.objects.bulk_create(begun, ignore_conflicts=True)
    AttemptStage.objects.bulk_update(
        [stage for stage in ended if stage not in begun], ["ended_at", "detail", "failure"]
    )
    _note_run(attempt, reports)


def reported_at(attempt: Attempt, report: Frame) -> datetime:
    """Return the time of a report by the node's clock, within what the portal's clock allows."""
    reported = moment_of(int(report["t"] * 1000))
    return min(max(reported, attempt.created_at), clock.now())


def _begun(attempt: Attempt, report: Frame) -> AttemptStage:
    return AttemptStage(
        attempt=attempt,
        name=report["stage"],
        started_at=reported_at(attempt, report),
        detail=_detail(report),
    )


def _end(stage: AttemptStage, attempt: Attempt, report: Frame) -> None:
    stage.ended_at = reported_at(attempt, report)
    if report.get("ok", True):
        stage.detail = _detail(report) or stage.detail
    else:
        stage.failure = _detail(report) or "failed"


def _detail(report: Frame) -> str:
    return storable(report.get("detail") or "", _DETAIL_CHARS)


def _note_run(attempt: Attempt, reports: list[Frame]) -> None:
    """Set the start of the run at the first report of its command."""
    runs = (r for r in reports if r["stage"] == StageName.RUN and r["phase"] == BEGIN)
    first = next(runs, None)
    if first is None:
        return
    attempts = Attempt.objects.filter(pk=attempt.pk, run_started_at=None)
    is_first = attempts.update(run_started_at=reported_at(attempt, first))
    # This wakes provisioning, which moves the job to running.
    if is_first and attempt.contacted_at is not None:
        wake_on_commit("running", attempt.job_id)
