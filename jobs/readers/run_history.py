"""The runs of one name in a project, newest first, and the position of a job among them."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Max, Min

from jobs.models import Job, Project
from jobs.permissions import Actor, Verb, jobs_of, require
from jobs.readers.extended import extended
from jobs.readers.job_filter import COUNT_LIMIT
from jobs.readers.job_pages import JobOrder, page_of
from jobs.readers.job_table import MAX_LIMIT, Rights
from jobs.readers.runs import runs_of
from monarch_client.wire.runs import HistoryRun


@dataclass(frozen=True, slots=True)
class RunHistory:
    """One page of runs, and the cursors of the pages beside it."""

    runs: list[HistoryRun]
    next: str | None
    previous: str | None
    # What the reader may do in the project.
    verbs: frozenset[Verb]


@dataclass(frozen=True, slots=True)
class RunPosition:
    """The position of a job among the jobs of its name: their number before and after it.

    Counting stops after COUNT_LIMIT on each side. `previous` and `next` are its neighbors.
    """

    before: int
    after: int
    previous: int | None
    next: int | None

    @property
    def is_only(self) -> bool:
        """Whether there is no other job of this name."""
        return not (self.before or self.after)

    @property
    def number(self) -> int | None:
        """The number of this run, from 1; None if it was not counted."""
        return self.before + 1 if self.before <= COUNT_LIMIT else None

    @property
    def total(self) -> int | None:
        """The number of all runs; None if they were not counted."""
        is_known = max(self.before, self.after) <= COUNT_LIMIT
        return self.before + self.after + 1 if is_known else None


def run_history(
    actor: Actor, project: Project, name: str, *, cursor: str | None = None, limit: int = 50
) -> RunHistory:
    """Return a page of at most `limit` (1..200) runs. InvalidCursorError for a wrong cursor."""
    require(actor, Verb.VIEW_PROJECT, project)
    rights = Rights.of(actor, project)
    jobs = jobs_of(actor, project).filter(name=name)
    page = page_of(jobs, JobOrder(), cursor, max(1, min(MAX_LIMIT, limit)))
    found = runs_of(Job.objects.filter(pk__in=page.numbers), {project.pk: rights})
    shown = [found[number] for number in page.numbers if number in found]
    oldest = page.numbers[-1] if page.numbers else 0
    before = jobs.filter(pk__lt=oldest).order_by()[: COUNT_LIMIT + 1].count()
    numbers = range(before + len(shown), before, -1)
    is_counted = before <= COUNT_LIMIT
    return RunHistory(
        runs=[
            extended(HistoryRun, run, number=number if is_counted else None)
            for run, number in zip(shown, numbers, strict=True)
        ],
        next=page.next,
        previous=page.previous,
        verbs=rights.verbs,
    )


def run_position(actor: Actor, job: Job) -> RunPosition:
    """Return the position of a job among the jobs of its name, in two queries."""
    jobs = jobs_of(actor, job.project).filter(name=job.name)
    older = jobs.filter(pk__lt=job.pk).order_by("-pk")[: COUNT_LIMIT + 1]
    newer = jobs.filter(pk__gt=job.pk).order_by("pk")[: COUNT_LIMIT + 1]
    before = older.aggregate(count=Count("pk"), nearest=Max("pk"))
    after = newer.aggregate(count=Count("pk"), nearest=Min("pk"))
    return RunPosition(before["count"], after["count"], before["nearest"], after["nearest"])
