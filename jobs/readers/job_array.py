"""An array as one object: the status of each job by index, and a part of its jobs as rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Exists, F, Max, OuterRef
from django.urls import reverse

from jobs.errors import NotFoundError
from jobs.models import Job, JobArray, JobDependency
from jobs.models.job import JobQuerySet
from jobs.permissions import Actor, Verb, jobs_of, project_for
from jobs.readers.job_table import MAX_LIMIT, Rights, job_row, with_attempts
from jobs.statuses import FINAL_STATUSES, JobStatus
from monarch_client.wire import jobs as wire

ROWS_OF_PAGE = 100


@dataclass(frozen=True, slots=True)
class Cell:
    """The newest job at an index of an array; `retries` are those of its failures and losses."""

    index: int
    status: str
    retries: int


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """An array with all its cells, and a page of the rows in one status or in any."""

    array: wire.Array
    cells: list[Cell]
    page: int
    pages: int


def array_for(actor: Actor, slug: str, array_id: int) -> JobArray:
    """Return the array of that number. NotFoundError when the actor cannot see it."""
    project = project_for(actor, slug)
    arrays = JobArray.objects.select_related("project", "submitted_by").filter(project=project)
    if actor.driver is not None:
        arrays = arrays.filter(Exists(jobs_of(actor, project).filter(array=OuterRef("pk"))))
    array = arrays.filter(pk=array_id).first()
    if array is None:
        raise NotFoundError(f"There is no array {array_id} in project {slug}.")
    return array


def job_array(
    actor: Actor, slug: str, array_id: int, *, begin: int = 0, limit: int = MAX_LIMIT
) -> wire.Array:
    """Return the array with its jobs at `limit` indexes from `begin` on."""
    array = array_for(actor, slug, array_id)
    rights = Rights.of(actor, array.project)
    newest = Job.objects.filter(array=array).newest_of_arrays()
    end = begin + limit
    rows = _rows(newest.filter(array_index__gte=begin, array_index__lt=end), rights)
    following = str(end) if end < array.size else None
    before = str(max(0, begin - limit)) if begin else None
    return _view(array, rights, newest, rows, (before, following))


def array_part(
    actor: Actor, slug: str, array_id: int, *, status: str = "", page: int = 1
) -> ArrayPart:
    """Return the array with a page of its jobs, from 1; `status`: only of the jobs in it."""
    array = array_for(actor, slug, array_id)
    rights = Rights.of(actor, array.project)
    newest = Job.objects.filter(array=array).newest_of_arrays()
    retries = F("failure_count") + F("recovery_count")
    rows = newest.order_by("array_index").values_list("array_index", "status", retries)
    cells = [Cell(*row) for row in rows]
    chosen = [cell.index for cell in cells if status in {"", cell.status}]
    pages = max(1, -(-len(chosen) // ROWS_OF_PAGE))
    page = min(page, pages)
    shown = chosen[(page - 1) * ROWS_OF_PAGE : page * ROWS_OF_PAGE]
    view = _view(array, rights, newest, _rows(newest.filter(array_index__in=shown), rights))
    return ArrayPart(view, cells, page, pages)


def job_at(actor: Actor, slug: str, array_id: int, index: int) -> int:
    """Return the number of the newest job at an index. NotFoundError: it was deleted."""
    array = array_for(actor, slug, array_id)
    at_index = Job.objects.filter(array=array, array_index=index).order_by("-pk")
    number = at_index.values_list("pk", flat=True).first()
    if number is None:
        raise NotFoundError(f"Array {array_id} has no job at index {index}.")
    return number


def _rows(jobs: JobQuerySet, rights: Rights) -> list[wire.Job]:
    return [job_row(job, rights) for job in with_attempts(jobs).order_by("array_index")]


def _view(
    array: JobArray,
    rights: Rights,
    newest: JobQuerySet,
    rows: Iterable[wire.Job],
    cursors: tuple[str | None, str | None] = (None, None),
) -> wire.Array:
    counted = newest.values("status").annotate(jobs=Count("pk"), ended=Max("ended_at")).order_by()
    counts, ends = {}, []
    for row in counted:
        counts[row["status"]] = row["jobs"]
        if row["ended"] is not None:
            ends.append(row["ended"])
    is_final = FINAL_STATUSES.issuperset(counts)
    lost = counts.get(JobStatus.FAILED, 0) + counts.get(JobStatus.CANCELLED, 0)
    return wire.Array(
        id=array.pk,
        project=array.project.slug,
        name=array.name,
        size=array.size,
        max_parallel=array.max_parallel,
        values=dict(array.values),
        counts=counts,
        deleted=array.size - sum(counts.values()),
        submitted_by=array.submitted_by.get_username(),
        created_at=array.created_at,
        ended_at=max(ends, default=None) if is_final else None,
        is_final=is_final,
        can_cancel=not is_final and _can_cancel(newest, rights),
        can_rerun_failed=bool(lost) and Verb.RERUN_JOB in rights.verbs,
        jobs=list(rows),
        previous=cursors[0],
        next=cursors[1],
        url=reverse("web:array", args=[array.project.slug, array.pk]),
    )


def _can_cancel(newest: JobQuerySet, rights: Rights) -> bool:
    """Whether the reader may end any of the jobs that are not ending already."""
    ongoing = newest.unfinished().exclude(status=JobStatus.STOPPING)
    # It depends on who submitted a job, and on nothing else of it.
    of_each = ongoing.order_by("submitted_by", "pk").distinct("submitted_by").only("submitted_by")
    return any(rights.allow(job, Verb.CANCEL_OWN_JOB, Verb.CANCEL_ANY_JOB) for job in of_each)


def misses_dependencies(array_id: int) -> bool:
    """Whether a job that the newest jobs of an array waited for has been deleted."""
    newest = Job.objects.filter(array=array_id).newest_of_arrays()
    return JobDependency.objects.filter(job__in=newest, needs=None).exists()
