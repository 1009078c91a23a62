"""Runs beside one another: times, costs, specifications, and the histories of their metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from jobs.errors import NotFoundError
from jobs.models import GpuUse, Job, ProgramSeries, Project
from jobs.permissions import Actor, projects_of
from jobs.policies.gpu_use import columns_of as gpu_columns_of
from jobs.policies.program_metrics import columns_of, joined, thinned
from jobs.readers.job_table import Rights
from jobs.readers.runs import MOST_METRICS, runs_of
from monarch_client.spec.difference import changed_lines, differing_values
from monarch_client.wire import metrics as wire_metrics
from monarch_client.wire import runs as wire

# Of all series of an answer together, so that no answer is large.
MOST_POINTS = 20_000
# The newest attempts of a run whose histories are read.
MOST_ATTEMPTS = 4


def comparison(
    actor: Actor, numbers: Sequence[int], *, points: int = MOST_POINTS
) -> wire.Comparison:
    """Return the jobs with these numbers, of any projects, in this order.

    NotFoundError: the actor cannot see one of them.
    """
    jobs = Job.objects.filter(pk__in=numbers, project__in=projects_of(actor))
    found = {job.pk: job for job in jobs.only("spec", "spec_source", "project")}
    projects = Project.objects.filter(pk__in={job.project_id for job in found.values()})
    rights = {project.pk: Rights.of(actor, project) for project in projects}
    runs = runs_of(Job.objects.filter(pk__in=found), rights)
    # A job that was found first may have been deleted meanwhile.
    for number in numbers:
        if number not in runs:
            raise NotFoundError(f"There is no job {number}, or you may not see it.")
    shown = [found[number] for number in numbers]
    return wire.Comparison(
        runs=[runs[number] for number in numbers],
        fields=[
            wire.SpecField(path=path, values=values)
            for path, values in differing_values([job.spec for job in shown])
        ],
        changes=[
            wire.SpecChanges(job=job.pk, lines=changed_lines(shown[0].spec_source, job.spec_source))
            for job in shown[1:]
        ],
        series=_series_of(numbers, points),
        gpu_use=_gpu_use_of(numbers),
    )


def _series_of(numbers: Sequence[int], points: int) -> list[wire.RunSeries]:
    """Return the histories of all metrics, by name and in the order of the runs."""
    lowest = ProgramSeries.objects.filter(attempt__job__in=numbers)
    lowest = lowest.order_by("attempt__job", "name", "-attempt__number", "rank")
    lowest = lowest.distinct("attempt__job", "name", "attempt__number")
    keys: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for number, job, name in lowest.values_list("pk", "attempt__job", "name"):
        keys[name, job].append(number)
    names = sorted({name for name, _ in keys})[:MOST_METRICS]
    wanted = {
        (name, job): keys[name, job][:MOST_ATTEMPTS]
        for name in names
        for job in numbers
        if (name, job) in keys
    }
    rows = ProgramSeries.objects.in_bulk([key for each in wanted.values() for key in each])
    most = points // max(1, len(wanted))
    return [
        wire.RunSeries(job=job, name=name, **_columns([rows[key] for key in reversed(each)], most))
        for (name, job), each in wanted.items()
    ]


def _columns(attempts: Sequence[ProgramSeries], most: int) -> dict[str, list[Any]]:
    whole = joined([[*row.old, *row.recent] for row in attempts])
    return columns_of(thinned(whole, most))


def _gpu_use_of(numbers: Sequence[int]) -> list[wire_metrics.GpuUseSeries | None]:
    """Return the GPU use of the last attempt of each job that has one."""
    rows = GpuUse.objects.filter(job__in=numbers).order_by("job", "-attempt_id").distinct("job")
    known = {row.job_id: gpu_columns_of(row.points) for row in rows if row.points}
    return [
        wire_metrics.GpuUseSeries(**known[number]) if number in known else None
        for number in numbers
    ]
