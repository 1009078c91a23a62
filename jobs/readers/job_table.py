"""The job table: one project's jobs, newest first, filtered, by cursor."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Count, Exists, Max, OuterRef, Prefetch, Q, QuerySet, Sum
from django.urls import reverse

from jobs.errors import InvalidCursorError
from jobs.limits import walltime_of
from jobs.models import GpuUse, Job, Project, Queue, ScheduleRun
from jobs.permissions import Actor, Verb, jobs_of, require, verbs_of
from jobs.readers.gpu_use import gpu_use_of
from jobs.statuses import JobKind, JobStatus
from monarch_client.wire import jobs as wire

MAX_LIMIT = 200
# More digits than this do not fit the database's 64 bits.
_ID_DIGITS = 18


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Empty means "all". `user` may be "me"; `q` looks in the name and is also taken as an id."""

    status: tuple[str, ...] = ()
    user: str = ""
    name: str = ""
    kind: str = ""
    array: int | None = None
    parent: int | None = None
    gpu: str = ""
    q: str = ""


@dataclass(frozen=True, slots=True)
class JobTable:
    """One page of rows, and the cursors of the pages beside it."""

    rows: list[wire.Job]
    next: str | None
    previous: str | None

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
    actor: Actor, project: Project, flt: JobFilter, *, cursor: str | None = None, limit: int = 50
) -> JobTable:
    """Return a page of at most `limit` (1..200) jobs. InvalidCursorError for a wrong cursor."""
    require(actor, Verb.VIEW_PROJECT, project)
    limit = max(1, min(MAX_LIMIT, limit))
    page, has_next, has_previous = _page(
        with_attempts(_filtered(actor, project, flt)), cursor, limit
    )
    rights = Rights.of(actor, project)
    return JobTable(
        rows=[job_row(job, rights) for job in page],
        next=_cursor("after", page[-1].pk) if has_next else None,
        previous=_cursor("before", page[0].pk) if has_previous else None,
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


def _page(jobs: QuerySet[Job], cursor: str | None, limit: int) -> tuple[list[Job], bool, bool]:
    """Return the jobs of one page, and whether there are older and newer ones beyond it."""
    direction, pivot = _parse_cursor(cursor)
    if direction == "before":
        page = list(jobs.filter(pk__gt=pivot).order_by("pk")[: limit + 1])
        return page[:limit][::-1], bool(page), len(page) > limit
    if pivot is not None:
        jobs = jobs.filter(pk__lt=pivot)
    page = list(jobs.order_by("-pk")[: limit + 1])
    return page[:limit], len(page) > limit, pivot is not None and bool(page)


def status_counts(actor: Actor, project: Project) -> dict[str, int]:
    """Count the jobs by status; statuses without a job are absent."""
    require(actor, Verb.VIEW_PROJECT, project)
    rows = Job.objects.filter(project=project).values("status").annotate(n=Count("pk"))
    return {row["status"]: row["n"] for row in rows.order_by()}


# Distinct values without reading all rows: one step in the index for each.
_GPU_TYPES = """
WITH RECURSIVE found AS (
    (SELECT gpu_type FROM jobs_job WHERE project_id = %(project)s AND gpu_count > 0
     ORDER BY gpu_type LIMIT 1)
    UNION ALL
    SELECT (SELECT gpu_type FROM jobs_job WHERE project_id = %(project)s AND gpu_count > 0
            AND gpu_type > found.gpu_type ORDER BY gpu_type LIMIT 1)
    FROM found WHERE found.gpu_type IS NOT NULL
)
SELECT gpu_type FROM found WHERE gpu_type <> ''
"""


def has_jobs(actor: Actor, project: Project) -> bool:
    """Whether the project has any job."""
    return jobs_of(actor, project).exists()


def gpu_types(actor: Actor, project: Project) -> list[str]:
    """List the types of GPUs that the project's jobs request or requested, by name."""
    require(actor, Verb.VIEW_PROJECT, project)
    with connection.cursor() as cursor:
        cursor.execute(_GPU_TYPES, {"project": project.pk})
        return [row[0] for row in cursor.fetchall()]


def with_attempts(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Annotate the jobs with all that `job_row` reads, in two queries."""
    rows = jobs.select_related("project", "submitted_by", "schedule_run__schedule")
    newest_first = GpuUse.objects.order_by("-attempt_id")
    rows = rows.prefetch_related(Prefetch("gpu_uses", newest_first, to_attr="newest_gpu_uses"))
    return rows.annotate(
        attempt_number=Max("attempts__number"),
        attempt_count=Count("attempts"),
        run_began=Max("attempts__run_started_at", filter=Q(attempts__ended_at=None)),
        usd=Sum("attempts__usd"),
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
        "can_rerun": Verb.SUBMIT_JOB in rights.verbs,
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


def _filtered(actor: Actor, project: Project, flt: JobFilter) -> QuerySet[Job]:
    jobs = jobs_of(actor, project)
    if flt.status:
        jobs = jobs.filter(status__in=flt.status)
    if flt.user == "me":
        jobs = jobs.filter(submitted_by=actor.user)
    elif flt.user:
        jobs = jobs.filter(submitted_by__username=flt.user)
    if flt.name:
        jobs = jobs.filter(name=flt.name)
    if flt.gpu:
        jobs = jobs.filter(gpu_type=flt.gpu.upper(), gpu_count__gt=0)
    if flt.kind:
        jobs = jobs.filter(kind=flt.kind)
    of = {"array": flt.array, "parent": flt.parent}.items()
    jobs = jobs.filter(**{name: pk for name, pk in of if pk is not None})
    if flt.q:
        jobs = jobs.filter(_matching(flt.q))
    return jobs


def _matching(text: str) -> Q:
    """Match a part of the name, or the id itself."""
    by_name = Q(name__icontains=text)
    is_id = text.isascii() and text.isdecimal() and len(text) < _ID_DIGITS
    return by_name | Q(pk=int(text)) if is_id else by_name


def _cursor(direction: str, pivot: int) -> str:
    return base64.urlsafe_b64encode(f"{direction}:{pivot}".encode()).decode()


def _parse_cursor(cursor: str | None) -> tuple[str, int | None]:
    if not cursor:
        return "after", None
    try:
        text = base64.urlsafe_b64decode(cursor).decode("ascii")
    except (binascii.Error, UnicodeError, ValueError):
        raise InvalidCursorError from None
    direction, _, pivot = text.partition(":")
    known = direction in {"after", "before"} and pivot.isdecimal() and len(pivot) < _ID_DIGITS
    if not known:
        raise InvalidCursorError
    return direction, int(pivot)
