"""Enforce budgets of projects: report each threshold once a month, and stop jobs if configured.

The queue itself starts no jobs of a project without budget: `jobs.spending.budget_blocks`.
"""

from __future__ import annotations

import logging
from decimal import Decimal

from django.db import transaction

from jobs.actions.clusters.take_down import release_unneeded
from jobs.background.hints import wake_on_commit
from jobs.errors import StaleJobError
from jobs.ground import clock
from jobs.lifecycle import move
from jobs.models import Budget, BudgetNotice, Cluster, Job
from jobs.policies.budgets import Month, newly_crossed, said_of
from jobs.policies.costs import NOTHING
from jobs.spending import spent_in
from jobs.statuses import ACTIVE_STATUSES, ClusterStatus, JobStatus, StopReason
from monarch_client.crash_points import reach

log = logging.getLogger(__name__)
_STOPPABLE = ACTIVE_STATUSES - {JobStatus.STOPPING}


def due() -> list[int]:
    """Return the projects with a budget."""
    return list(Budget.objects.values_list("project_id", flat=True))


def step(project_id: int) -> None:
    """Check what one project has spent this month. Safe to repeat; a crash loses nothing."""
    now = clock.now()
    month = Month.of(now)
    spent = spent_in(month, now, [project_id]).get(project_id, NOTHING)
    budget = _note(project_id, month, spent)
    if budget is None:
        return
    reach("budget.noted")
    if budget.terms.stops(spent):
        _stop_all(budget, said_of(budget.project.slug, budget.terms, spent, month))


@transaction.atomic
def _note(project_id: int, month: Month, spent: Decimal) -> Budget | None:
    """Record the crossed thresholds; return the budget if it still exists."""
    # A concurrent step waits here, and finds the records.
    rows = Budget.objects.select_for_update(no_key=True, of=("self",)).select_related("project")
    budget = rows.filter(project=project_id).first()
    if budget is None:
        return None
    notices = BudgetNotice.objects.filter(project=project_id, month=month.first_day)
    noted = set(notices.values_list("threshold", flat=True))
    for threshold in newly_crossed(budget.terms, spent, noted):
        BudgetNotice.objects.create(
            project=budget.project,
            month=month.first_day,
            threshold=threshold,
            usd=spent,
            budget_usd=budget.usd,
        )
        context = {"action": "budget_crossed", "project": budget.project.slug}
        log.warning(said_of(budget.project.slug, budget.terms, spent, month), extra=context)
    return budget


def _stop_all(budget: Budget, why: str) -> None:
    """Stop the project's started jobs, and terminate its idle warm clusters."""
    for job in Job.objects.in_status(*_STOPPABLE).filter(project=budget.project_id).order_by("pk"):
        try:
            _stop(job, why)
        except StaleJobError:
            continue  # it was moved just now; the next step sees its new status
        reach("budget.stopped")
    # Stopped clusters remain: users may need their disks.
    idle = Cluster.objects.waiting().filter(project=budget.project_id)
    for cluster in idle.exclude(status=ClusterStatus.STOPPED):
        release_unneeded(cluster, why, verb="budget")


@transaction.atomic
def _stop(job: Job, why: str) -> None:
    move(
        job,
        JobStatus.STOPPING,
        reason=StopReason.BUDGET,
        message=why,
        attempt=job.attempts.newest(),
        hint="Ask an administrator of the portal for a larger budget, or run it again next month.",
    )
    wake_on_commit("stopping", job.pk)
