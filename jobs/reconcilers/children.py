"""Ends the jobs that a job's program submitted, once that job has ended for good."""

from __future__ import annotations

from jobs.actions.jobs.children import end_with_parent
from jobs.errors import StaleJobError
from jobs.models import Job


def due() -> list[int]:
    """Jobs that go on without their parent, though they are not detached."""
    return list(Job.objects.orphaned().order_by("pk").values_list("pk", flat=True))


def step(job_id: int) -> None:
    """End one of them. Safe to repeat; a crash loses nothing."""
    try:
        end_with_parent(job_id)
    except StaleJobError:
        return  # the next look sees where it went
