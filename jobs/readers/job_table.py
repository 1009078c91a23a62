"""The job table: one project's jobs, filtered and ordered, by cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Exists, Max, OuterRef, Prefetch, Q, QuerySet, Sum
from django.urls import reverse

from jobs.ground.query_plans import planned_for_values
from jobs.limits import walltime_of
from jobs.models import GpuUse, Job, JobDependency, Project, Queue, ScheduleRun
from jobs.permissions import Actor, Verb, jobs_of, require, verbs_of
from jobs.readers.diagnosis_title import diagnosis_title
from jobs.readers.gpu_use import gpu_use_of
from jobs.readers.job_filter import JobFilter, matching_jobs
from jobs.readers.job_pages import JobOrder, page_of
from jobs.statuses import JobKind, JobStatus
from monarch_client.wire import jobs as wire

MAX_LIMIT = 200
NEWEST_FIRST = JobOrder()


@dataclass(frozen=True, slots=True)
class JobTable:
    """One page of rows, and the cursors of the pages beside it."""

    rows: list[wire.Job]
    next: str | None
    previous: str | None
    # What the reader may do in the project.
    verbs: frozenset[Verb]

    @property
    def has_costs(self) -> bool:
        """Whether any of these jobs has a known cost."""
        return any(row.usd is not None for row in self.rows)

    @property
    def has_gpu_use(self) -> bool:
        """Whether hosts of any of these jobs reported GPUs."""
        return any(row.gpu_use is not None for row in self.rows)


@dataclass(frozen=True, slots=True)
class Rights:
    """The reader's permissions in the project, looked up once for all rows."""

    user_id: int
    verbs: frozenset[Verb]

    @classmethod
    def of(cls, actor: Actor, project: Project) -> Rights:
        """Return the actor's permissions in `project`."""
        return cls(user_id=actor.user.pk, verbs=verbs_of(actor, project))

    def allow(self, job: Job, own: Verb, of_others: Verb) -> bool:
        """Whether the reader may do to this job what takes `own` where it is their own."""
        is_own = job.submitted_by_id == self.user_id
        return of_others in self.verbs or (is_own and own in self.verbs)


def job_table(
    actor: Actor,
    project: Project,
    flt: JobFilter,
    order: JobOrder = NEWEST_FIRST,
    *,
    cursor: str | None = None,
    limit: int = 50,
) -> JobTable:
    """Return a page of at most `limit` (1..200) jobs. InvalidCursorError for a wrong cursor."""
    rights = Rights.of(actor, project)
    if Verb.VIEW_PROJECT not in rights.verbs:
        require(actor, Verb.VIEW_PROJECT, project)
    limit = max(1, min(MAX_LIMIT, limit))
    with planned_for_values():
        page = page_of(matching_jobs(actor, project, flt), order, cursor, limit)
    found = {job.pk: job for job in with_attempts(Job.objects.filter(pk__in=page.numbers))}
    return JobTable(
        rows=[job_row(found[number], rights) for number in page.numbers if number in found],
        next=page.next,
        previous=page.previous,
        verbs=rights.verbs,
    )


def rows_of(actor: Actor, project: Project, jobs: Sequence[Job]) -> list[wire.Job]:
    """Return the rows of these jobs of one project, in the same order."""
    rights = Rights.of(actor, project)
    found = {
        job.pk: job for job in with_attempts(Job.objects.filter(pk__in=[job.pk for job in jobs]))
    }
    return [job_row(found[job.pk], rights) for job in jobs if job.pk in found]


def rows_by_number(actor: Actor, project: Project, numbers: Sequence[int]) -> list[wire.Job]:
    """Return the rows of the jobs with these numbers that the actor may see, newest first."""
    require(actor, Verb.VIEW_PROJECT, project)
    rights = Rights.of(actor, project)
    jobs = with_attempts(jobs_of(actor, project).filter(pk__in=numbers).order_by("-pk"))
    return [job_row(job, rights) for job in jobs]


def with_attempts(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Annotate the jobs with all that `job_row` reads, in two queries."""
    rows = jobs.select_related("project", "submitted_by", "schedule_run__schedule")
    newest_first = GpuUse.objects.order_by("-attempt_id")
    rows = rows.prefetch_related(Prefetch("gpu_uses", newest_first, to_attr="newest_gpu_uses"))
    return rows.annotate(
        attempt_number=Max("attempts__number"),
        diagnosis=diagnosis_title(),
        attempt_count=Count("attempts"),
        run_began=Max("attempts__run_started_at", filter=Q(attempts__ended_at=None)),
        usd=Sum("attempts__usd"),
        has_dependencies=Exists(JobDependency.objects.filter(job=OuterRef("pk"))),
        has_dependents=Exists(JobDependency.objects.filter(needs=OuterRef("pk"))),
        queue_gives_way=Exists(Queue.objects.filter(name=OuterRef("queue_name"), preemptible=True)),
    )


def job_row(job: Job, rights: Rights) -> wire.Job:
    """Return the row of a job that was read through `with_attempts`; `url` is a path."""
    status, walltime = JobStatus(job.status), walltime_of(job)
    return wire.Job(
        id=job.pk,
        project=job.project.slug,
        name=job.name,
        kind=job.kind,
        kind_label=_kind_label(job),
        status=job.status,
        status_label=status.label,
        wait_reason=job.wait_reason,
        wait_message=job.message if status == JobStatus.QUEUED else "",
        stop_reason=job.stop_reason,
        message="" if status == JobStatus.QUEUED else job.message,
        diagnosis=(getattr(job, "diagnosis", None) or "") if status == JobStatus.FAILED else "",
        hint=job.hint,
        exit_code=job.exit_code,
        num_nodes=job.num_nodes,
        gpu_type=job.gpu_type,
        gpu_count=job.gpu_count,
        gpu_use=gpu_use_of(job),
        backend=job.backend_name,
        queue=job.queue_name,
        priority=job.priority,
        preemptible=job.preemptible or getattr(job, "queue_gives_way", False),
        submitted_by=job.submitted_by.get_username(),
        rerun_of=job.rerun_of_id,
        parent=job.parent_number,
        parent_attempt=job.parent_attempt,
        schedule=_schedule_of(job),
        array=job.array_id,
        array_index=job.array_index,
        array_values=job.array_values,
        has_dependencies=getattr(job, "has_dependencies", False),
        has_dependents=getattr(job, "has_dependents", False),
        labels=job.labels,
        note=job.note,
        created_at=job.created_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        max_duration_s=walltime,
        stops_at=_stops_at(job, walltime),
        attempt=getattr(job, "attempt_number", None),
        attempt_count=getattr(job, "attempt_count", 0),
        usd=getattr(job, "usd", None),
        is_final=status.is_final,
        url=reverse("web:job", args=[job.project.slug, job.pk]),
        **_what_may_be_done(job, rights, status, walltime),
    )


def _what_may_be_done(
    job: Job, rights: Rights, status: JobStatus, walltime: int | None
) -> dict[str, bool]:
    """Return the row's `can_...` fields: what the holder of `rights` may do with the job now."""
    may_hold = rights.allow(job, Verb.HOLD_OWN_JOB, Verb.HOLD_ANY_JOB)
    goes_on = not status.is_final and status != JobStatus.STOPPING
    waits = status == JobStatus.QUEUED
    return {
        "can_cancel": rights.allow(job, Verb.CANCEL_OWN_JOB, Verb.CANCEL_ANY_JOB) and goes_on,
        "can_hold": may_hold and waits and not job.held,
        "can_release": may_hold and job.held,
        "can_prioritize": waits
        and rights.allow(job, Verb.PRIORITIZE_OWN_JOB, Verb.PRIORITIZE_ANY_JOB),
        "can_extend": goes_on
        and walltime is not None
        and rights.allow(job, Verb.EXTEND_OWN_JOB, Verb.EXTEND_ANY_JOB),
        "can_rerun": Verb.RERUN_JOB in rights.verbs,
        "can_label": Verb.LABEL_JOB in rights.verbs,
        "can_delete": Verb.DELETE_JOB in rights.verbs and status.is_final,
    }


def _stops_at(job: Job, walltime: int | None) -> datetime | None:
    begun: datetime | None = getattr(job, "run_began", None)
    if walltime is None or begun is None or JobStatus(job.status).is_final:
        return None
    return begun + timedelta(seconds=walltime)


def _schedule_of(job: Job) -> str:
    run: ScheduleRun | None = getattr(job, "schedule_run", None)
    return run.schedule.name if run else ""


def _kind_label(job: Job) -> str:
    """Return the display name of the kind: most plain jobs have one node, and are just jobs."""
    if job.kind != JobKind.PLAIN:
        return JobKind(job.kind).label
    return "Multi-node job" if job.num_nodes > 1 else "Job"
