"""The plan beside the editor: where the job could run, and for how much."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from jobs.actions.jobs.plan import plan_job
from jobs.errors import InvalidSpecError
from jobs.permissions import Actor, project_for
from jobs.web.base.access import signed_in


@require_POST
@signed_in
def plan(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the launch plan. While the backend works on it, the part requests itself again."""
    source = request.POST.get("source", "").replace("\r\n", "\n")
    context: dict[str, Any] = {"project": project_for(actor, slug)}
    try:
        context["plan"] = plan_job(actor, context["project"], source)
    except InvalidSpecError as error:
        context["errors"] = error.data.get("errors", [])
    return render(request, "jobs/_plan.html", context)
