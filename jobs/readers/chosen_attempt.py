"""The attempt that a request chooses."""

from __future__ import annotations

from jobs.errors import NotFoundError
from jobs.models import Attempt, Job


def chosen_attempt(job: Job, number: int | None) -> Attempt | None:
    """Return the attempt of that number, else the newest; None if there is none at all.

    NotFoundError: the job has no attempt of that number.
    """
    attempts = job.attempts.order_by("-number")
    if number is None:
        return attempts.first()
    found = attempts.filter(number=number).first()
    if found is None:
        raise NotFoundError(f"Job {job.pk} has no attempt {number}.")
    return found
