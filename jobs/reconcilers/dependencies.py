"""Lets jobs go on, or ends them, once the jobs they depend on have ended."""

from __future__ import annotations

from jobs.actions.jobs.settle_dependencies import settle_dependencies
from jobs.models import JobDependency
from jobs.statuses import JobStatus


def due() -> list[int]:
    """Queued jobs for which a needed job has ended, without anybody having acted on it."""
    rows = JobDependency.objects.unnoted().filter(job__status=JobStatus.QUEUED)
    return list(rows.order_by("job_id").values_list("job_id", flat=True).distinct())


def step(job_id: int) -> None:
    """Act on what has ended. Safe to repeat; a crash loses nothing."""
    settle_dependencies(job_id)
