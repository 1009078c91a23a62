"""Point dependencies on the failed jobs of an array to their reruns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.admission.dependency_messages import wait_for_dependencies
from jobs.live.channel import publish_many_on_commit, publish_queue_on_commit
from jobs.models import Job, JobDependency
from jobs.statuses import JobStatus

_HELD_HINT = "Release it, and it starts once what it needs has ended as it should; or cancel it."


def follow_reruns(again: Sequence[Job]) -> None:
    """Make queued jobs that need a rerun array job depend on its rerun in `again` instead.

    Call it in the transaction that stores `again`. Skips jobs that have started or ended, and jobs
    that `again` itself depends on, which would make a cycle.
    """
    replaced = {job.rerun_of_id: job for job in again if job.rerun_of_id and job.array_id}
    dependants = JobDependency.objects.filter(needs__in=replaced).values("job")
    # Lock the waiting jobs first, as code that handles the end of a needed job does.
    queued = Job.objects.in_status(JobStatus.QUEUED).filter(pk__in=dependants)
    waiting = queued.exclude(pk__in=_needed_by(again)).select_for_update(no_key=True)
    jobs = list(waiting.order_by("pk"))
    if not jobs:
        return
    _exchange(jobs, replaced)
    for job in jobs:
        changes = wait_for_dependencies(list(job.dependencies.order_by("needs_number")))
        if job.held:
            changes = {"message": changes.get("message", ""), "hint": _HELD_HINT}
        Job.objects.filter(pk=job.pk).update(**changes)
    publish_many_on_commit([(job.pk, job.project_id) for job in jobs])
    publish_queue_on_commit()


def _exchange(jobs: Sequence[Job], replaced: Mapping[int, Job]) -> None:
    rows = JobDependency.objects.filter(job__in=jobs, needs__in=replaced)
    new = [
        JobDependency(
            job_id=row.job_id,
            needs=(needed := replaced[row.needs_number]),
            needs_number=needed.pk,
            needs_name=needed.name,
            after=row.after,
        )
        for row in rows
    ]
    rows.delete()
    JobDependency.objects.bulk_create(new, batch_size=250)


def _needed_by(again: Sequence[Job]) -> set[int]:
    """Return all jobs that these depend on, directly or not."""
    found: set[int] = set()
    todo = {job.pk for job in again}
    while todo:
        rows = JobDependency.objects.filter(job__in=todo, needs__isnull=False)
        todo = set(rows.values_list("needs", flat=True)) - found
        found |= todo
    return found
