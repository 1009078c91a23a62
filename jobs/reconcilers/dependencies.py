"""Unblock or end queued jobs once the jobs that they need have ended."""

from __future__ import annotations

from jobs.actions.jobs.settle_dependencies import settle_dependencies
from jobs.models import JobDependency
from jobs.statuses import JobStatus


def due() -> list[int]:
    """Return queued jobs for which a needed job has ended and is not settled."""
    rows = JobDependency.objects.unnoted().filter(job__status=JobStatus.QUEUED)
    return list(rows.order_by("job_id").values_list("job_id", flat=True).distinct())


def step(job_id: int) -> None:
    """Settle the dependencies of one job. Safe to repeat; a crash loses nothing."""
    settle_dependencies(job_id)
