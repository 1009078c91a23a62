"""Runs beside one another: times, costs, specifications, and the histories of their metrics."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobs.errors import NotFoundError
from jobs.models import GpuUse, Job, ProgramSeries, Project
from jobs.permissions import Actor, projects_of
from jobs.policies.gpu_use import columns_of as gpu_columns_of
from jobs.policies.program_metrics import columns_of, joined, thinned, within
from jobs.readers.job_table import Rights
from jobs.readers.runs import MOST_METRICS, runs_of
from monarch_client.spec.difference import changed_lines, differing_values
from monarch_client.wire import metrics as wire_metrics
from monarch_client.wire import runs as wire

# Of all series of an answer together, so that no answer is large.
MOST_POINTS = 20_000
# The newest attempts of a run whose histories are read.
MOST_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class SeriesWindow:
    """A window of steps, or of seconds since the start of each run."""

    low: float
    high: float
    by_step: bool

    def ends(self, begin: float) -> tuple[float, float]:
        """Return the ends for a run that began at `begin`, in seconds since 1970.

        Clocks of nodes may be behind the portal's: what they report earlier belongs to the start.
        """
        if self.by_step:
            return self.low, self.high
        return (begin + self.low if self.low > 0 else -math.inf), begin + self.high


def begin_of(run: wire.Run) -> float:
    """Return when a run started, or was submitted, in seconds since 1970."""
    return (run.job.started_at or run.job.created_at).timestamp()


def comparison(
    actor: Actor,
    numbers: Sequence[int],
    *,
    points: int = MOST_POINTS,
    window: SeriesWindow | None = None,
) -> wire.Comparison:
    """Return the jobs with these numbers, of any projects, in this order.

    Their series have at most `points` together, of the window if there is one.
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
        series=_series_of([runs[number] for number in numbers], points, window),
        gpu_use=_gpu_use_of(numbers),
    )


def _series_of(
    runs: Sequence[wire.Run], points: int, window: SeriesWindow | None
) -> list[wire.RunSeries]:
    """Return the histories of all metrics, by name and in the order of the runs."""
    begins = {run.job.id: begin_of(run) for run in runs}
    numbers = list(begins)
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
    found = []
    for (name, job), each in wanted.items():
        history = joined([[*rows[key].old, *rows[key].recent] for key in reversed(each)])
        if window:
            history = within(history, *window.ends(begins[job]), by_step=window.by_step)
        columns: dict[str, Any] = columns_of(thinned(history, most))
        found.append(wire.RunSeries(job=job, name=name, **columns))
    return found


def _gpu_use_of(numbers: Sequence[int]) -> list[wire_metrics.GpuUseSeries | None]:
    """Return the GPU use of the last attempt of each job that has one."""
    rows = GpuUse.objects.filter(job__in=numbers).order_by("job", "-attempt_id").distinct("job")
    known = {row.job_id: gpu_columns_of(row.points) for row in rows if row.points}
    return [
        wire_metrics.GpuUseSeries(**known[number]) if number in known else None
        for number in numbers
    ]
