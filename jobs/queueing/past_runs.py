"""Durations of past jobs, for estimates of the queue."""

from __future__ import annotations

from collections.abc import Iterable
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


def usual_seconds(numbers: Iterable[int]) -> dict[int, float]:
    """Return how long recent jobs of the same name and project held machines, by job number.

    The median of those that succeeded; else what `max_duration` allows; else it is left out.
    """
    jobs = list(
        Job.objects.filter(pk__in=list(numbers)).values("pk", "project_id", "name", "duration_s")
    )
    past = Attempt.objects.filter(
        job__status=JobStatus.SUCCEEDED,
        job__project__in={job["project_id"] for job in jobs},
        job__name__in={job["name"] for job in jobs},
        ended_at__gte=clock.now() - LOOKED_BACK,
        exit_code=0,
    )
    medians = {
        (row["job__project_id"], row["job__name"]): row["lasted"].total_seconds()
        for row in past.values("job__project_id", "job__name").annotate(
            lasted=Median(F("ended_at") - F("created_at"))
        )
    }
    found = {job["pk"]: medians.get((job["project_id"], job["name"])) for job in jobs}
    bounds = {job["pk"]: job["duration_s"] for job in jobs}
    usual = {number: seconds or bounds[number] for number, seconds in found.items()}
    return {number: float(seconds) for number, seconds in usual.items() if seconds is not None}
