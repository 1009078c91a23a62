"""The plan beside the editor: where the job could run, for how much, and when."""

from __future__ import annotations

import difflib
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from jobs.actions.jobs.submit import check_spec
from jobs.errors import InvalidSpecError
from jobs.permissions import Actor, project_for
from jobs.readers.launch_plan import plan_job
from jobs.web.base.access import signed_in
from jobs.web.jobs.submit_page import earlier_source

# Finding differences can take the square of the lines.
_MOST_LINES, _MOST_CHARACTERS = 2_000, 64 * 1024


@require_POST
@signed_in
def plan(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Render the launch plan. While the backend works on it, the part requests itself again."""
    source = request.POST.get("source", "").replace("\r\n", "\n")
    project = project_for(actor, slug)
    context: dict[str, Any] = {"project": project}
    earlier = request.POST.get("from", "")
    before = earlier_source(actor, slug, earlier) if earlier else ""
    try:
        checked = check_spec(actor, project, source)
    except InvalidSpecError as error:
        context["errors"] = error.data.get("errors", [])
    else:
        context["plan"] = plan_job(actor, project, checked)
        if earlier:
            context |= {"earlier": earlier, "changes": _changes(before, source)}
    return render(request, "jobs/_plan.html", context)


def _changes(before: str, after: str) -> list[tuple[str, str]] | None:
    """Return the changed lines with one around them, each as (`added`, `removed` or ``, text).

    None: a text is too long to compare.
    """
    for text in (before, after):
        if len(text) > _MOST_CHARACTERS or text.count("\n") > _MOST_LINES:
            return None
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    kinds = {"+": "added", "-": "removed"}
    # The first two name the files.
    return [(kinds.get(line[:1], ""), line) for line in [*lines][2:]]
