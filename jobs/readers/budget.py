"""A project's spending against its monthly budget, and the jobs that wait for it."""

from __future__ import annotations

from decimal import Decimal

from jobs.ground import clock
from jobs.models import Budget, BudgetNotice, Project
from jobs.permissions import Actor, Verb, may_change_installation, require
from jobs.policies.budgets import WARNS_AT, Month, Terms, said_of, why_held
from jobs.policies.costs import NOTHING, percent_of
from jobs.spending import spent_in
from jobs.statuses import OnSpent
from monarch_client.wire import money as wire


def budget_view(actor: Actor, project: Project) -> wire.Budget:
    """Return the project's budget with the cost of this month so far."""
    require(actor, Verb.VIEW_PROJECT, project)
    now = clock.now()
    month = Month.of(now)
    spent = spent_in(month, now, [project.pk]).get(project.pk, NOTHING)
    row = Budget.objects.select_related("set_by").filter(project=project).first()
    terms = row.terms if row else None
    notices = BudgetNotice.objects.filter(project=project, month=month.first_day)
    return wire.Budget(
        project=project.slug,
        usd=terms.usd if terms else None,
        on_spent=terms.on_spent if terms else OnSpent.HOLD,
        warn_at=list(terms.warn_at if terms else WARNS_AT),
        month=f"{month.begin:%Y-%m}",
        begins_at=month.begin,
        ends_at=month.end,
        spent_usd=spent,
        percent=percent_of(spent, terms.usd) if terms else None,
        holds=terms is not None and terms.holds(spent),
        sentence=_sentence(project.slug, terms, spent, month) if terms else "",
        notices=[
            wire.Notice(threshold=each.threshold, usd=each.usd, at=each.at)
            for each in notices.order_by("pk")
        ],
        set_by=row.set_by.get_username() if row and row.set_by else "",
        set_at=row.set_at if row else None,
        may_set=may_change_installation(actor),
    )


def _sentence(slug: str, terms: Terms, spent: Decimal, month: Month) -> str:
    said = why_held if terms.holds(spent) else said_of
    return said(slug, terms, spent, month)
