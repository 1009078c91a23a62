"""The jobs that a search by name or number finds in all projects of a user."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet

from jobs.ground.query_plans import planned_for_values
from jobs.models import Job, Project
from jobs.permissions import Actor, projects_of
from jobs.readers.job_filter import named_like, number_in
from jobs.statuses import JobStatus

# Of the project of the page, and of the others together.
MOST_FOUND = 8


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job in the results of a search."""

    id: int
    name: str
    project: str
    status_label: str


def found_jobs(actor: Actor, text: str, project: Project | None) -> list[FoundJob]:
    """Return the visible jobs with `text` in their name or as their number.

    The job whose number it is comes first, then jobs of `project`, then those of other projects,
    each the newest first.
    """
    visible = Job.objects.filter(project__in=projects_of(actor))
    parts: list[QuerySet[Job]] = [visible.filter(pk=number_in(text) or 0)]
    if project is not None:
        parts.append(named_like(visible.filter(project=project), text))
        visible = visible.exclude(project=project)
    parts.append(named_like(visible, text))
    with planned_for_values():
        found = {job.pk: job for part in parts for job in _newest(part)}
    return [
        FoundJob(job.pk, job.name, job.project.slug, JobStatus(job.status).label)
        for job in found.values()
    ]


def _newest(jobs: QuerySet[Job]) -> QuerySet[Job]:
    rows = jobs.select_related("project").only("name", "status", "project__slug")
    return rows.order_by("-pk")[:MOST_FOUND]
