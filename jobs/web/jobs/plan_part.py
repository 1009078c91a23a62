"""The plans below the editor: where the jobs could run, for how much, and when."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from jobs.actions.jobs.submit_documents import check_documents
from jobs.errors import InvalidSpecError
from jobs.permissions import Actor, project_for
from jobs.readers.launch_plan import plan_jobs
from jobs.web.base.access import signed_in
from jobs.web.jobs.submit_page import edited_source
from monarch_client.spec.difference import changed_lines


@require_POST
@signed_in
def plan(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the launch plans. While a backend works on one, the part requests itself again."""
    source = request.POST.get("source", "").replace("\r\n", "\n")
    project = project_for(actor, slug)
    context: dict[str, Any] = {"project": project}
    earlier = request.POST.get("from", "")
    before = edited_source(actor, slug, earlier)
    try:
        checked = check_documents(actor, project, source)
    except InvalidSpecError as error:
        context["errors"] = error.data.get("errors", [])
    else:
        plans = plan_jobs(actor, project, checked)
        context |= {"plans": plans, "is_pending": any(each.is_pending for each in plans.results)}
        if before is not None:
            context |= {"earlier": earlier, "changes": changed_lines(before, source)}
    return render(request, "jobs/_plan.html", context)
