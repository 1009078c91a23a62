"""The page of a project's settings that shows its budget and sets it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from jobs.actions.projects.set_budget import remove_budget, set_budget
from jobs.models import Project
from jobs.permissions import Actor, project_for, require_budget
from jobs.readers.budget import budget_view
from jobs.statuses import OnSpent
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page
from jobs.web.usage.budget_form import BudgetForm
from monarch_client.wire.money import Budget


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the budget; POST sets another one."""
    project = project_for(actor, slug)
    form = None
    if request.method == "POST":
        require_budget(actor)
        form = BudgetForm(request.POST)
        if form.is_valid():
            _set(actor, project, form)
            messages.success(request, "The budget is set.")
            return redirect("web:budget", slug=slug)
    budget = budget_view(actor, project)
    context: dict[str, Any] = {
        "project": project,
        "nav": "settings",
        "first": budget.begins_at,
        "budget": budget,
        "budget_percent": min(100, budget.percent or 0),
    }
    if budget.may_set:
        context["form"] = form or BudgetForm(initial=_initial(budget))
    return render_page(request, actor, "projects/budget.html", context, project=project)


def _initial(budget: Budget) -> dict[str, Any]:
    return {
        "usd": "" if budget.usd is None else budget.usd.quantize(Decimal("0.01")),
        "on_spent": budget.on_spent,
        "warn_at": ", ".join(map(str, budget.warn_at)),
    }


def _set(actor: Actor, project: Project, form: BudgetForm) -> None:
    data = form.cleaned_data
    if data["usd"] is None:
        remove_budget(actor, project)
    else:
        set_budget(actor, project, data["usd"], OnSpent(data["on_spent"]), data["warn_at"])
