"""End child jobs once their parent has ended."""

from __future__ import annotations

from jobs.actions.jobs.children import end_with_parent
from jobs.errors import StaleJobError
from jobs.models import Job


def due() -> list[int]:
    """Return unfinished children, except detached ones, whose parent ended."""
    return list(Job.objects.orphaned().order_by("pk").values_list("pk", flat=True))


def step(job_id: int) -> None:
    """End one child job. Safe to repeat; a crash loses nothing."""
    try:
        end_with_parent(job_id)
    except StaleJobError:
        return  # the next step sees its new status
