"""The job page: one job with its attempts, their stages and workers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Prefetch

from jobs.ground import clock
from jobs.models import Attempt, AttemptStage, Cluster, Job, JobDependency, LogHead, Worker
from jobs.permissions import Actor, job_for
from jobs.policies.diagnosis import Diagnosis
from jobs.policies.limits import should_warn, shown_minutes_s
from jobs.readers.clusters import ssh_command
from jobs.readers.job_table import JobRow, Rights, job_row, with_attempts
from jobs.statuses import PURPOSES, JobStatus, StageName

# Children that a page names; the list of jobs has all.
SHOWN_CHILDREN = 5


@dataclass(frozen=True, slots=True)
class StageView:
    """A stage as a reader sees it; `state` is pending, active, done, failed or stopped.

    "stopped": it was ended on purpose, which is no failure.
    """

    name: str
    label: str
    state: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_s: float | None = None
    detail: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One host of an attempt."""

    rank: int
    mesh: str
    address: str
    status: str
    python: str
    pid: int | None
    exit_code: int | None
    detail: str
    ready_at: datetime | None
    ended_at: datetime | None
    ssh: str


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One run of the job."""

    id: int
    number: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    stop_reason: str
    message: str
    hint: str
    exit_code: int | None
    cluster_name: str
    infra: str
    resources: str
    usd_per_hour: Decimal | None
    usd: Decimal | None
    diagnosis: Diagnosis | None
    log_removed_at: datetime | None
    stages: list[StageView]
    workers: list[WorkerView]


@dataclass(frozen=True, slots=True)
class DependencyView:
    """A job that comes before. `is_there`: it has not been deleted."""

    job: int
    name: str
    after: str
    ended_as: str
    is_met: bool
    is_there: bool


@dataclass(frozen=True, slots=True)
class ChildView:
    """A job that this one's program submitted."""

    job: int
    name: str
    status: str


@dataclass(frozen=True, slots=True)
class JobPage:
    """All that the job page shows but log and events. Attempts: newest first.

    Workers has the attempt that was asked for, or the newest. `parent_is_there`: it has not been
    deleted. `children`: the newest of all `child_count`. `time_left`: how long it may still run,
    where that is not long; else empty.
    """

    job: JobRow
    spec_source: str
    spec: dict[str, Any]
    attempts: list[AttemptView]
    dependencies: list[DependencyView]
    parent_is_there: bool
    children: list[ChildView]
    child_count: int
    time_left: str = ""

    @property
    def misses_dependencies(self) -> bool:
        """Whether a job that it waited for has been deleted."""
        return not all(each.is_there for each in self.dependencies)


def job_page(actor: Actor, slug: str, job_id: int, number: int | None = None) -> JobPage:
    """The page's content, with the workers of attempt `number`, or of the newest.

    NotFoundError when the actor cannot see the job.
    """
    job, row = _found(actor, slug, job_id)
    return JobPage(
        job=row,
        spec_source=job.spec_source,
        spec=job.spec,
        attempts=attempts_of(job, workers_of=number or row.attempt or 0),
        dependencies=[_dependency_view(each) for each in job.dependencies.order_by("needs_number")],
        parent_is_there=job.parent_id is not None,
        children=_children_of(job),
        child_count=job.children.count(),
        time_left=_time_left(row),
    )


def job_now(actor: Actor, slug: str, job_id: int) -> JobRow:
    """The job alone, as it stands. NotFoundError when the actor cannot see it."""
    return _found(actor, slug, job_id)[1]


def _found(actor: Actor, slug: str, job_id: int) -> tuple[Job, JobRow]:
    job = job_for(actor, slug, job_id, with_attempts(Job.objects.all()))
    return job, job_row(job, Rights.of(actor, job.project))


def _children_of(job: Job) -> list[ChildView]:
    newest = job.children.order_by("-pk")[:SHOWN_CHILDREN]
    return [ChildView(child.pk, child.name, child.status) for child in newest]


def _dependency_view(row: JobDependency) -> DependencyView:
    return DependencyView(
        job=row.needs_number,
        name=row.needs_name,
        after=row.after,
        ended_as=row.ended_as,
        is_met=row.is_met,
        is_there=row.needs_id is not None,
    )


def _time_left(job: JobRow) -> str:
    if job.stops_at is None or job.max_duration_s is None:
        return ""
    left_s = (job.stops_at - clock.now()).total_seconds()
    near = should_warn(job.max_duration_s - left_s, job.max_duration_s)
    return shown_minutes_s(left_s) if near and job.status != JobStatus.STOPPING else ""


def attempts_of(job: Job, workers_of: int | None = None) -> list[AttemptView]:
    """The job's attempts, newest first, in four queries whatever their number.

    `workers_of`: only this one has its workers, of which there may be a thousand.
    """
    workers = Worker.objects.order_by("rank")
    if workers_of is not None:
        workers = workers.filter(attempt__number=workers_of)
    attempts = job.attempts.select_related("cluster", "log_head")
    attempts = attempts.prefetch_related("stages", Prefetch("workers", queryset=workers))
    return [_attempt_view(attempt) for attempt in attempts.order_by("-number")]


def _attempt_view(attempt: Attempt) -> AttemptView:
    rows = {stage.name: stage for stage in attempt.stages.all()}
    cluster = attempt.cluster
    # An attempt that nobody has heard of has none.
    head: LogHead | None = getattr(attempt, "log_head", None)
    return AttemptView(
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
        diagnosis=Diagnosis.of(attempt.diagnosis),
        log_removed_at=head.removed_at if head else None,
        stages=[_stage_view(name, rows.get(name), attempt) for name in StageName],
        workers=[_worker_view(worker, cluster) for worker in attempt.workers.all()],
    )


def _stage_view(name: StageName, row: AttemptStage | None, attempt: Attempt) -> StageView:
    if row is None:
        return StageView(name=name, label=name.label, state="pending")
    state = "failed" if row.failure else "done" if row.ended_at else "active"
    if state == "failed" and attempt.stop_reason in PURPOSES:
        state = "stopped"
    return StageView(
        name=name,
        label=name.label,
        state=state,
        started_at=row.started_at,
        ended_at=row.ended_at,
        duration_s=row.duration_s,
        detail=row.detail,
        failure=row.failure,
    )


def _worker_view(row: Worker, cluster: Cluster | None) -> WorkerView:
    return WorkerView(
        rank=row.rank,
        mesh=row.mesh,
        address=row.address,
        status=row.status,
        python=row.python,
        pid=row.pid,
        exit_code=row.exit_code,
        detail=row.detail,
        ready_at=row.ready_at,
        ended_at=row.ended_at,
        ssh=ssh_command(cluster, row.rank),
    )
