"""Jobs on the overview: running, waiting and failed ones, and what ended since a moment."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Case,
    Count,
    F,
    Func,
    Max,
    Prefetch,
    QuerySet,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce

from jobs.ground import clock
from jobs.models import GpuUse, Job, Project
from jobs.permissions import Actor
from jobs.queueing.current_pass import Plan
from jobs.readers.diagnosis_title import diagnosis_title
from jobs.readers.expected_starts import expected_starts
from jobs.readers.gpu_use import gpu_use_of
from jobs.statuses import FINAL_STATUSES, JobStatus, StopReason, WaitReason
from monarch_client.runner.vocabulary.verdicts import RAISED
from monarch_client.wire import overview as wire

MOST_BUSY, MOST_WAITING, MOST_CAUSES, MOST_ENDED = 5, 5, 5, 3
LONGEST_CAUSE = 160
# The failures that the overview shows.
LATELY = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class JobNumbers:
    """The numbers of unfinished and lately failed jobs, by project id."""

    running: Counter[int]
    waiting: Counter[int]
    failed: Counter[int]
    waiting_for: list[wire.WaitingFor]


def job_numbers(projects: Sequence[Project]) -> JobNumbers:
    """Count the jobs of these projects."""
    rows = (
        Job.objects.unfinished()
        .filter(project__in=projects)
        .values("project", "status", "wait_reason")
        .annotate(n=Count("pk"))
        .order_by()
    )
    running: Counter[int] = Counter()
    waiting: Counter[int] = Counter()
    reasons: Counter[str] = Counter()
    for row in rows:
        is_queued = row["status"] == JobStatus.QUEUED
        (waiting if is_queued else running)[row["project"]] += row["n"]
        if is_queued:
            reasons[row["wait_reason"]] += row["n"]
    failed = _failed(projects).values("project").annotate(n=Count("pk")).order_by()
    return JobNumbers(
        running,
        waiting,
        Counter({row["project"]: row["n"] for row in failed}),
        [
            wire.WaitingFor(reason=reason, label=_label(reason), jobs=number)
            for reason, number in reasons.most_common()
        ],
    )


def busy_jobs(projects: Sequence[Project]) -> list[wire.BusyJob]:
    """Return the jobs with machines, those with the most GPUs first."""
    newest_first = GpuUse.objects.order_by("-attempt_id")
    jobs = (
        Job.objects.unfinished()
        .filter(project__in=projects)
        .exclude(status=JobStatus.QUEUED)
        .select_related("project", "submitted_by")
        .prefetch_related(Prefetch("gpu_uses", newest_first, to_attr="newest_gpu_uses"))
        .defer("spec", "spec_source")
        .order_by("-gpu_count", "-num_nodes", "-pk")[:MOST_BUSY]
    )
    return [
        wire.BusyJob(
            id=job.pk,
            project=job.project.slug,
            name=job.name,
            status=job.status,
            status_label=JobStatus(job.status).label,
            num_nodes=job.num_nodes,
            gpu_type=job.gpu_type,
            gpu_count=job.gpu_count,
            gpu_use=gpu_use_of(job),
            submitted_by=job.submitted_by.get_username(),
            started_at=job.started_at,
        )
        for job in jobs
    ]


def waiting_jobs(actor: Actor, projects: Sequence[Project], plan: Plan) -> list[wire.WaitingJob]:
    """Return the first queued jobs, held ones last, with their expected starts."""
    queued = Job.objects.in_status(JobStatus.QUEUED).filter(project__in=projects)
    jobs = list(
        queued.select_related("project")
        .defer("spec", "spec_source")
        .order_by("held", "-priority", "pk")[:MOST_WAITING]
    )
    expected = expected_starts((job.pk for job in jobs if not job.held), plan)
    return [
        wire.WaitingJob(
            id=job.pk,
            project=job.project.slug,
            name=job.name,
            num_nodes=job.num_nodes,
            gpu_type=job.gpu_type,
            gpu_count=job.gpu_count,
            wait_reason=job.wait_reason,
            message=job.message or _label(job.wait_reason),
            since=job.created_at,
            expected_at=expected[job.pk].at if job.pk in expected else None,
            next_try_at=job.next_try_at,
        )
        for job in jobs
    ]


def failures(projects: Sequence[Project]) -> list[wire.FailureCause]:
    """Return the causes for which jobs failed lately, the most frequent first."""
    undiagnosed = When(title__isnull=True, then=_in_common())
    common = Case(undiagnosed, default=Value(""), output_field=TextField())
    rows = list(
        _failed(projects)
        .annotate(title=diagnosis_title())
        .annotate(common=common)
        .values("stop_reason", "title", "common")
        .annotate(n=Count("pk"), last=Max("pk"))
        .order_by("-n", "-last")[:MOST_CAUSES]
    )
    last = Job.objects.select_related("project").only(
        "name", "ended_at", "message", "exit_code", "project__slug"
    )
    jobs = last.in_bulk([row["last"] for row in rows])
    return [_cause(row, jobs[row["last"]]) for row in rows if row["last"] in jobs]


def changes(projects: Sequence[Project], since: datetime) -> wire.Changes:
    """Return what ended since a moment."""
    ended = Job.objects.filter(project__in=projects, ended_at__gte=since)
    ended = ended.filter(status__in=FINAL_STATUSES)
    counts = ended.values_list("status").annotate(Count("pk")).order_by()
    newest = ended.select_related("project").defer("spec", "spec_source")
    return wire.Changes(
        since=since,
        counts=dict(counts),
        newest=[
            wire.EndedJob(
                id=job.pk,
                project=job.project.slug,
                name=job.name,
                status=job.status,
                at=job.ended_at,
            )
            for job in newest.order_by("-ended_at")[:MOST_ENDED]
        ],
    )


def _failed(projects: Sequence[Project]) -> QuerySet[Job]:
    begin = clock.now() - LATELY
    return Job.objects.filter(project__in=projects, status=JobStatus.FAILED, ended_at__gte=begin)


def _in_common() -> Coalesce:
    """Return what failures without a diagnosis have in common: an exception, or an exit code.

    Numbers in an exception do not matter: a shard, a line, a size.
    """
    text = TextField()
    error = Func(F("message"), Value(" raised (.*)"), function="substring", output_field=text)
    varies = Value(r"\d+| Attempt \d+ ended.*")
    same = Func(error, varies, Value(""), Value("g"), function="regexp_replace", output_field=text)
    return Coalesce(same, Cast("exit_code", TextField()), Value(""), output_field=TextField())


def _cause(row: Mapping[str, Any], last: Job) -> wire.FailureCause:
    reason, title = row["stop_reason"], row["title"] or ""
    return wire.FailureCause(
        cause=title or _words_of(last),
        stop_reason=reason,
        is_diagnosis=bool(title),
        jobs=row["n"],
        last_job=last.pk,
        last_name=last.name,
        last_project=last.project.slug,
        last_at=last.ended_at,
    )


def _words_of(job: Job) -> str:
    """Return a job's exception; without one its stop reason, with the exit code."""
    if raised := re.search(RAISED, job.message):
        return textwrap.shorten(raised.group(1), LONGEST_CAUSE, placeholder=" ...")
    reason = job.stop_reason
    label = StopReason(reason).label if reason in StopReason.values else "Unknown reason"
    has_code = reason == StopReason.USER_CODE and job.exit_code is not None
    return f"{label}: exit code {job.exit_code}" if has_code else str(label)


def _label(reason: str) -> str:
    """Return the label of a wait's reason; a job that was just submitted has none yet."""
    known = reason in WaitReason.values
    return str(WaitReason(reason).label) if known else "Waits for the next scheduling pass"
