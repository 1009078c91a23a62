"""Enforce budgets of jobs: warn when most of a budget is spent, stop the job when all is."""

from __future__ import annotations

from decimal import Decimal

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from jobs.actions.jobs.history import record_note
from jobs.background.hints import wake_on_commit
from jobs.errors import StaleJobError
from jobs.ground import clock
from jobs.lifecycle import move
from jobs.models import Attempt, Job
from jobs.policies.budgets import Stand, stand_of
from jobs.policies.costs import percent_of, shown
from jobs.spending import budget_of_job, cost_of_job
from jobs.statuses import ACTIVE_STATUSES, BUDGET, JobStatus, StopReason

_STOPPABLE = ACTIVE_STATUSES - {JobStatus.STOPPING}


def due() -> list[int]:
    """Return jobs with a budget that have started and not ended."""
    # Machines cost money before the job runs on them.
    has_begun = Exists(Attempt.objects.filter(job=OuterRef("pk")))
    begun = Q(status__in=_STOPPABLE) | Q(has_begun, status=JobStatus.QUEUED)
    jobs = Job.objects.filter(begun, request_options__has_key="budget_usd")
    return list(jobs.values_list("pk", flat=True))


def step(job_id: int) -> None:
    """Check what one job has cost. Safe to repeat; a crash loses nothing."""
    job = Job.objects.in_status(JobStatus.QUEUED, *_STOPPABLE).filter(pk=job_id).first()
    budget = budget_of_job(job) if job else None
    if job is None or budget is None:
        return
    spent = cost_of_job(job, clock.now())
    stand = stand_of(spent, budget)
    if stand is Stand.NEAR:
        _warn(job, spent, budget)
    elif stand is Stand.SPENT:
        try:
            _stop(job, spent, budget)
        except StaleJobError:
            return  # the next step sees its new status


@transaction.atomic
def _warn(job: Job, spent: Decimal, budget: Decimal) -> None:
    # A concurrent step waits here, and finds the note.
    Job.objects.select_for_update(no_key=True).get(pk=job.pk)
    if not job.events.filter(verb=BUDGET).exists():
        message = (
            f"Has used {percent_of(spent, budget)} % of its budget of {shown(budget)}; it is "
            "stopped when all of it is used."
        )
        record_note(job, message, job.attempts.newest(), verb=BUDGET)


@transaction.atomic
def _stop(job: Job, spent: Decimal, budget: Decimal) -> None:
    waits = job.status == JobStatus.QUEUED
    move(
        job,
        JobStatus.FAILED if waits else JobStatus.STOPPING,
        reason=StopReason.BUDGET,
        message=f"Has cost {shown(spent)}, all of its budget of {shown(budget)}.",
        attempt=job.attempts.newest(),
        hint="Make the job save and resume its work, and run it again with a larger "
        "portal.budget_usd.",
    )
    wake_on_commit("queue" if waits else "stopping", None if waits else job.pk)
