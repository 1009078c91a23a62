"""Messages of jobs that wait for other jobs, or can no longer start because of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.models import Job, JobDependency
from jobs.models.job_dependency import After
from jobs.statuses import JobStatus, WaitReason

_MOST_NAMED = 3


def row_of(job: Job | None, needed: Job, after: str) -> JobDependency:
    """Return the row by which `job` needs the other; None: a job that is not stored yet."""
    return JobDependency(
        job=job,
        needs=needed,
        needs_number=needed.pk,
        needs_name=needed.name,
        after=after,
        ended_as=needed.status if needed.is_final else "",
    )


def wait_for_dependencies(rows: Sequence[JobDependency]) -> dict[str, Any]:
    """Return the columns of a job that waits for the unmet of `rows`; empty if all are met."""
    unmet = [row for row in rows if not row.is_met]
    if not unmet:
        return {}
    waits = [f"{_job(row)} {After(row.after).label}" for row in unmet[:_MOST_NAMED]]
    if len(unmet) > _MOST_NAMED:
        waits.append(f"{len(unmet) - _MOST_NAMED} more")
    return {"wait_reason": WaitReason.DEPENDENCY, "message": f"Waits for {_listed(waits)}."}


def why_it_cannot_start(rows: Sequence[JobDependency]) -> str:
    """Describe which of the needed jobs did not succeed."""
    broken = [row for row in rows if row.is_broken]
    parts = [f"{_job(row)} {_ENDED[row.ended_as]}" for row in broken[:_MOST_NAMED]]
    if len(broken) > _MOST_NAMED:
        parts.append(f"{len(broken) - _MOST_NAMED} more did not succeed")
    return f"It needs what did not succeed: {_listed(parts)}."


_ENDED = {JobStatus.FAILED.value: "failed", JobStatus.CANCELLED.value: "was cancelled"}


def _job(row: JobDependency) -> str:
    return f"job {row.needs_number} ({row.needs_name})"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
