"""The jobs about which a browser may notify its user: those they watch, and their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, islice
from typing import Literal

from django.db.models import QuerySet

from jobs.ground import clock
from jobs.models import Job
from jobs.permissions import Actor, projects_of
from jobs.statuses import ACTIVE_STATUSES, FINAL_STATUSES, JobStatus

MOST_WATCHED, MOST_OWN = 50, 200
# A browser that was away for less than this still learns that an own job has ended.
LATELY = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class JobNotice:
    """The phase of a job, for notifications."""

    id: int
    name: str
    project: str
    phase: Literal["waiting", "running", "ended"]
    status_label: str


def job_notices(actor: Actor, watched: Iterable[int], *, own: bool) -> list[JobNotice]:
    """Return the watched jobs that the actor may see; with `own` also theirs that are not over."""
    visible = Job.objects.filter(project__in=projects_of(actor)).select_related("project")
    jobs = visible.only("name", "status", "project__slug")
    found = {job.pk: job for job in jobs.filter(pk__in=list(watched)[:MOST_WATCHED])}
    if own:
        for job in _own(jobs.filter(submitted_by=actor.user).order_by("-pk")):
            found[job.pk] = job
    return [_notice(job) for job in found.values()]


def _own(theirs: QuerySet[Job]) -> Iterator[Job]:
    """Return at most MOST_OWN jobs that are not over, or not for long; queued ones come last.

    One query for each kind, whose index leaves out the jobs that ended long ago: a user may have
    very many. There may be thousands of queued jobs, about which there is no notice.
    """
    kinds = (
        theirs.filter(status__in=ACTIVE_STATUSES),
        theirs.filter(ended_at__gte=clock.now() - LATELY),
        theirs.filter(status=JobStatus.QUEUED),
    )
    return islice(chain.from_iterable(kind[:MOST_OWN] for kind in kinds), MOST_OWN)


def _notice(job: Job) -> JobNotice:
    phase: Literal["waiting", "running", "ended"] = "waiting"
    if job.status in FINAL_STATUSES:
        phase = "ended"
    elif job.status == JobStatus.RUNNING:
        phase = "running"
    return JobNotice(job.pk, job.name, job.project.slug, phase, JobStatus(job.status).label)
