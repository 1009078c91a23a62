"""A job that was read before, as it is now: it may have ended or been deleted meanwhile."""

from __future__ import annotations

from jobs.errors import JobAlreadyFinalError, NotFoundError
from jobs.models import Job


def read_again(job: Job) -> None:
    """Bring `job` up to date. NotFoundError: it has been deleted."""
    try:
        job.refresh_from_db()
    except Job.DoesNotExist as error:
        raise NotFoundError from error


def keep(job: Job) -> None:
    """Prevent the deletion of `job` before this transaction ends.

    NotFoundError: it was deleted. Moves and deletions wait; what only refers to the job does not.
    """
    if not Job.objects.select_for_update(no_key=True).filter(pk=job.pk).exists():
        raise NotFoundError


def refuse_ended(job: Job) -> None:
    """Pass silently, or raise JobAlreadyFinalError."""
    if job.is_final:
        raise JobAlreadyFinalError(f"Job {job.pk} has already ended ({job.status}).")
