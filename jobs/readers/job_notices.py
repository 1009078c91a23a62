"""The jobs about which a browser may notify its user: those they watch, and their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from django.db.models import Q

from jobs.ground import clock
from jobs.models import Job
from jobs.permissions import Actor, projects_of
from jobs.statuses import FINAL_STATUSES, JobStatus

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
    wanted = Q(pk__in=list(watched)[:MOST_WATCHED])
    if own:
        lately = Q(ended_at__isnull=True) | Q(ended_at__gte=clock.now() - LATELY)
        wanted |= Q(submitted_by=actor.user) & lately
    jobs = Job.objects.filter(wanted, project__in=projects_of(actor)).select_related("project")
    only = ("name", "status", "project__slug")
    return [_notice(job) for job in jobs.only(*only).order_by("-pk")[: MOST_OWN + MOST_WATCHED]]


def _notice(job: Job) -> JobNotice:
    phase: Literal["waiting", "running", "ended"] = "waiting"
    if job.status in FINAL_STATUSES:
        phase = "ended"
    elif job.status == JobStatus.RUNNING:
        phase = "running"
    return JobNotice(job.pk, job.name, job.project.slug, phase, JobStatus(job.status).label)
