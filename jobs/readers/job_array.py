"""An array as one thing to watch: how many of its jobs stand where, and which they are."""

from __future__ import annotations

from django.db.models import Count, Exists, OuterRef
from django.urls import reverse

from jobs.errors import NotFoundError
from jobs.models import Job, JobArray, JobDependency
from jobs.permissions import Actor, Verb, jobs_of, project_for
from jobs.readers.job_table import Rights, job_row, with_attempts
from jobs.statuses import FINAL_STATUSES, JobStatus
from monarch_client.wire.jobs import Array


class ArrayView(Array):
    """An array with what its page shows besides."""

    @property
    def shares(self) -> list[tuple[JobStatus, int]]:
        """Statuses with their numbers of jobs, in the order of a life."""
        return [(status, self.counts[status]) for status in JobStatus if status in self.counts]


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


def job_array(actor: Actor, slug: str, array_id: int) -> ArrayView:
    """Return the array and its jobs, by their index in it."""
    array = array_for(actor, slug, array_id)
    rights = Rights.of(actor, array.project)
    newest = Job.objects.filter(array=array).newest_of_arrays()
    rows = [job_row(job, rights) for job in with_attempts(newest).order_by("array_index")]
    counted = newest.values("status").annotate(jobs=Count("pk")).order_by()
    counts = {row["status"]: row["jobs"] for row in counted}
    is_final = FINAL_STATUSES.issuperset(counts)
    lost = counts.get(JobStatus.FAILED, 0) + counts.get(JobStatus.CANCELLED, 0)
    ends = [row.ended_at for row in rows if row.ended_at is not None]
    open_rows = [row for row in rows if not row.is_final]
    return ArrayView(
        id=array.pk,
        project=slug,
        name=array.name,
        size=array.size,
        max_parallel=array.max_parallel,
        values=dict(array.values),
        counts=counts,
        deleted=array.size - len(rows),
        submitted_by=array.submitted_by.get_username(),
        created_at=array.created_at,
        ended_at=max(ends, default=None) if is_final else None,
        is_final=is_final,
        can_cancel=any(row.can_cancel for row in open_rows),
        can_rerun_failed=bool(lost) and Verb.RERUN_JOB in rights.verbs,
        jobs=rows,
        url=reverse("web:array", args=[slug, array.pk]),
    )


def misses_dependencies(array_id: int) -> bool:
    """Whether a job that the newest jobs of an array waited for has been deleted."""
    newest = Job.objects.filter(array=array_id).newest_of_arrays()
    return JobDependency.objects.filter(job__in=newest, needs=None).exists()
