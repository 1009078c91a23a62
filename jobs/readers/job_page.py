"""The job page: one job with its attempts, their stages and workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch

from jobs import models
from jobs.ground import clock
from jobs.logs.silence import Silence, silences_of
from jobs.models import AttemptStage, Job, JobDependency, LogHead
from jobs.permissions import Actor, job_for
from jobs.policies.limits import should_warn, shown_minutes_s
from jobs.readers.extended import extended
from jobs.readers.job_table import Rights, job_row, with_attempts
from jobs.readers.run_history import RunPosition, run_position
from jobs.readers.workers import worker_views
from jobs.statuses import PURPOSES, JobKind, JobStatus, StageName, StopReason
from monarch_client.wire import jobs as wire
from monarch_client.wire.attempts import Attempt, Diagnosis, Stage

# Children that a page names; the list of jobs has all.
SHOWN_CHILDREN = 5


@dataclass(frozen=True, slots=True)
class ChildView:
    """A job that this job's program submitted."""

    job: int
    name: str
    status: str


@dataclass(frozen=True, slots=True)
class JobPage:
    """All that the job page shows but log and events. Attempts: newest first.

    Attempts are without workers, which `readers/nodes.py` returns. `existing`: the numbers of the
    jobs before it that have not been deleted; `parent_is_there`: whether its parent has not.
    `children`: the newest of all `child_count`. `time_left`: how long it may still run, where that
    is not long.
    `silent`: the ranks that write nothing while the others do.
    """

    job: wire.JobDetail
    attempts: list[Attempt]
    existing: frozenset[int]
    parent_is_there: bool
    children: list[ChildView]
    child_count: int
    run: RunPosition
    time_left: str = ""
    silent: Sequence[Silence] = ()

    @property
    def misses_dependencies(self) -> bool:
        """Whether a job that it waited for has been deleted."""
        return not all(each.job in self.existing for each in self.job.dependencies)


def job_page(actor: Actor, slug: str, job_id: int) -> JobPage:
    """Return the page's content. NotFoundError when the actor cannot see the job."""
    job, row = _found(actor, slug, job_id)
    return JobPage(
        job=_detail(job, row),
        attempts=attempts_of(job, workers_of=0),
        existing=frozenset(job.dependencies.exclude(needs=None).values_list("needs_id", flat=True)),
        parent_is_there=job.parent_id is not None,
        children=_children_of(job),
        child_count=job.children.count(),
        run=run_position(actor, job),
        time_left=_time_left(row),
        silent=_silent(job),
    )


def _silent(job: Job) -> list[Silence]:
    """Return the silent ranks of a running job; one of a single node has none."""
    if job.status != JobStatus.RUNNING or job.num_hosts == 1:
        return []
    newest = models.Attempt.objects.select_related("log_head").newest_of(job.pk, JobStatus.RUNNING)
    return silences_of(newest) if newest else []


def job_now(actor: Actor, slug: str, job_id: int) -> wire.Job:
    """Return the job as lists show it. NotFoundError: the actor cannot see it."""
    return _found(actor, slug, job_id)[1]


def job_detail(actor: Actor, slug: str, job_id: int) -> wire.JobDetail:
    """Return the job with its specification. NotFoundError: the actor cannot see it."""
    job, row = _found(actor, slug, job_id)
    return _detail(job, row)


def _detail(job: Job, row: wire.Job) -> wire.JobDetail:
    rows = job.dependencies.order_by("needs_number")
    return extended(
        wire.JobDetail,
        row,
        spec_source=job.spec_source,
        spec=job.spec,
        dependencies=[_dependency(each) for each in rows],
    )


def _found(actor: Actor, slug: str, job_id: int) -> tuple[Job, wire.Job]:
    job = job_for(actor, slug, job_id, with_attempts(Job.objects.all()))
    return job, job_row(job, Rights.of(actor, job.project))


def _children_of(job: Job) -> list[ChildView]:
    newest = job.children.order_by("-pk")[:SHOWN_CHILDREN]
    return [ChildView(child.pk, child.name, child.status) for child in newest]


def _dependency(row: JobDependency) -> wire.Dependency:
    return wire.Dependency(
        job=row.needs_number,
        name=row.needs_name,
        after=row.after,
        ended_as=row.ended_as,
        is_met=row.is_met,
    )


def _time_left(job: wire.Job) -> str:
    if job.stops_at is None or job.max_duration_s is None:
        return ""
    left_s = (job.stops_at - clock.now()).total_seconds()
    near = should_warn(job.max_duration_s - left_s, job.max_duration_s)
    return shown_minutes_s(left_s) if near and job.status != JobStatus.STOPPING else ""


def attempts_of(job: Job, workers_of: int | None = None) -> list[Attempt]:
    """Return the job's attempts, newest first, in four queries whatever their number.

    `workers_of`: only this one has its workers, of which there may be a thousand.
    """
    workers = models.Worker.objects.order_by("rank")
    if workers_of is not None:
        workers = workers.filter(attempt__number=workers_of)
    attempts = job.attempts.select_related("cluster", "log_head")
    attempts = attempts.prefetch_related("stages", Prefetch("workers", queryset=workers))
    stages = _stages_of(job)
    return [_attempt(attempt, stages) for attempt in attempts.order_by("-number")]


def _stages_of(job: Job) -> list[StageName]:
    """Return the stages of a job: a plain one starts no workers."""
    has_workers = job.kind == JobKind.MONARCH
    return [name for name in StageName if has_workers or name != StageName.WORKERS]


def _attempt(attempt: models.Attempt, stages: list[StageName]) -> Attempt:
    rows = {stage.name: stage for stage in attempt.stages.all()}
    # Any job may lose a node there.
    failed = [name for name in StageName if name in rows and rows[name].failure]
    cluster = attempt.cluster
    # An attempt without any report has none.
    head: LogHead | None = getattr(attempt, "log_head", None)
    return Attempt(
        id=attempt.pk,
        number=attempt.number,
        created_at=attempt.created_at,
        started_at=attempt.run_started_at,
        ended_at=attempt.ended_at,
        stop_reason=attempt.stop_reason,
        message=attempt.message,
        hint=attempt.hint,
        exit_code=attempt.exit_code,
        cluster_name=cluster.name if cluster else "",
        infra=cluster.infra if cluster else "",
        resources=cluster.resources if cluster else "",
        usd_per_hour=cluster.usd_per_hour if cluster else None,
        usd=attempt.usd,
        diagnosis=Diagnosis(**attempt.diagnosis) if attempt.diagnosis else None,
        log_removed_at=head.removed_at if head else None,
        stages=[
            _stage(name, rows.get(name), attempt)
            for name in StageName
            if name in stages or name in failed
        ],
        workers=worker_views(attempt, attempt.workers.all()),
    )


def _stage(name: StageName, row: AttemptStage | None, attempt: models.Attempt) -> Stage:
    if row is None:
        return Stage(
            name=name,
            label=name.label,
            state="pending",
            started_at=None,
            ended_at=None,
            duration_s=None,
            detail="",
            failure="",
        )
    ended_at = row.ended_at or _cut_at(row, attempt)
    return Stage(
        name=name,
        label=name.label,
        state=_state_of(row, attempt),
        started_at=row.started_at,
        ended_at=ended_at,
        duration_s=(ended_at - row.started_at).total_seconds() if ended_at else None,
        detail=row.detail,
        failure=row.failure,
    )


def _cut_at(row: AttemptStage, attempt: models.Attempt) -> datetime | None:
    """Return when the end of its attempt ended a stage without an end of its own; None if it lasts.

    The machines are stopped after that.
    """
    if row.name == StageName.TEARDOWN or attempt.ended_at is None:
        return None
    return max(row.started_at, attempt.ended_at)


def _state_of(row: AttemptStage, attempt: models.Attempt) -> str:
    is_cut = row.ended_at is None and _cut_at(row, attempt) is not None
    if row.failure or (is_cut and attempt.stop_reason != StopReason.COMPLETED):
        return "stopped" if attempt.stop_reason in PURPOSES else "failed"
    return "done" if row.ended_at or is_cut else "active"
