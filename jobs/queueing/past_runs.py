"""Durations of past jobs, for estimates of the queue."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Aggregate, DurationField, F

from jobs.ground import clock
from jobs.models import Attempt, Job
from jobs.statuses import JobStatus

# Older runs say little about the code of today.
LOOKED_BACK = timedelta(days=30)


class Median(Aggregate):
    """PostgreSQL's continuous median."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


@dataclass(frozen=True, slots=True)
class Durations:
    """Usual times for which jobs hold machines, in seconds; `from_past`: those of past runs."""

    usual: Mapping[int, float]
    from_past: frozenset[int]


def usual_seconds(numbers: Iterable[int]) -> Mapping[int, float]:
    """Return `durations` alone."""
    return durations(numbers).usual


def durations(numbers: Iterable[int]) -> Durations:
    """Return how long recent jobs of the same name and project held machines.

    The median of those that succeeded; else what `max_duration` allows; else it is left out. Jobs
    of arrays go by the array's name: their own names end with their index.
    """
    jobs = Job.objects.filter(pk__in=list(numbers))
    rows = list(jobs.values_list("pk", "project_id", "name", "array__name", "duration_s"))
    alone = _medians("job__name", {(project, name) for _, project, name, of, _ in rows if not of})
    arrays = _medians("job__array__name", {(project, of) for _, project, _, of, _ in rows if of})
    past = {
        pk: arrays.get((project, of)) if of else alone.get((project, name))
        for pk, project, name, of, _ in rows
    }
    known = {pk: seconds for pk, seconds in past.items() if seconds}
    bounds = {pk: float(bound_s) for pk, *_, bound_s in rows if bound_s is not None}
    return Durations({**bounds, **known}, frozenset(known))


def _medians(by: str, keys: Collection[tuple[int, str]]) -> dict[tuple[int, str], float]:
    """Return the median seconds of attempts that succeeded, by project and the column `by`."""
    if not keys:
        return {}
    past = Attempt.objects.filter(
        job__status=JobStatus.SUCCEEDED,
        job__project__in={project for project, _ in keys},
        ended_at__gte=clock.now() - LOOKED_BACK,
        exit_code=0,
        **{f"{by}__in": {name for _, name in keys}},
    )
    rows = past.values_list("job__project_id", by)
    lasted = rows.annotate(lasted=Median(F("ended_at") - F("created_at")))
    return {(project, name): each.total_seconds() for project, name, each in lasted}
