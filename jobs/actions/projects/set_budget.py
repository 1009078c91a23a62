"""The monthly budget that an administrator of the installation sets for a project."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.db import transaction

from jobs.audit.record import record
from jobs.background.hints import wake_on_commit
from jobs.ground import clock
from jobs.models import Budget, BudgetNotice, Project
from jobs.permissions import Actor, require_budget
from jobs.policies.budgets import WARNS_AT, Month, is_void
from jobs.statuses import OnSpent

LARGEST = Decimal(10_000_000)
MOST_THRESHOLDS = 20


@transaction.atomic
def set_budget(
    actor: Actor,
    project: Project,
    usd: Decimal,
    on_spent: OnSpent | None = None,
    warn_at: Iterable[int] | None = None,
) -> None:
    """Give the project a budget of so much a month; it holds at once, also for what runs.

    What is None stays as it is; a new budget has `hold`, with notices at `WARNS_AT` per cent.

    Thresholds that a larger amount puts out of reach again are reported once more when they are
    crossed. PermissionDeniedError.
    """
    require_budget(actor)
    month = Month.of(clock.now()).first_day
    given = {"on_spent": on_spent, "warn_at": None if warn_at is None else sorted(set(warn_at))}
    terms = {"usd": usd, "set_by": actor.user, "set_at": clock.now()}
    terms |= {key: value for key, value in given.items() if value is not None}
    was = Budget.objects.filter(project=project).first()
    first = {"on_spent": OnSpent.HOLD, "warn_at": sorted(WARNS_AT)}
    budget, _ = Budget.objects.update_or_create(
        project=project, defaults=terms, create_defaults=first | terms
    )
    for notice in BudgetNotice.objects.filter(project=project, month=month):
        if is_void(notice.threshold, notice.usd, usd):
            notice.delete()
    before = _terms(was) if was else None
    record(actor, "set_budget", project, before=before, after=_terms(budget))
    _wake()


@transaction.atomic
def remove_budget(actor: Actor, project: Project) -> None:
    """Let the project spend as much as it likes. PermissionDeniedError."""
    require_budget(actor)
    was = Budget.objects.filter(project=project).first()
    BudgetNotice.objects.filter(project=project, month=Month.of(clock.now()).first_day).delete()
    if was is None:
        return
    was.delete()
    record(actor, "remove_budget", project, before=_terms(was))
    _wake()


def _terms(budget: Budget) -> dict[str, Any]:
    # Two places, as it is stored: what was set again unchanged makes no entry.
    return {"usd": f"{budget.usd:.2f}", "on_spent": budget.on_spent, "warn_at": budget.warn_at}


def _wake() -> None:
    for reconciler in ("budgets", "queue"):
        wake_on_commit(reconciler)
